"""Planted bugs in what Mamba puts before the scan and after it: softplus, bias, limits, D, gate."""

import numpy as np

from refssm.conformance.honest.selective_scan.forms import biased, gated, silu, softplus
from refssm.conformance.planted.arithmetic import bfloat16
from refssm.conformance.planted.selective_scan.base import GATED, STEP, Table

TABLE = Table()
DEVIATIONS = TABLE.bugs
ONE, OTHER = GATED[::2], GATED[1::2]  # scan and packed; stateful and step
SCANS = tuple(name for name in GATED if name not in STEP)  # one step meets few extremes


def before(name, what, function, on=GATED, check="value[float32]"):
    """A wrong step from dt and dt_bias."""
    TABLE.plant(on, name, what, check=check, before=function)


def softened(name, what, soft, on=GATED, check="value[float32]"):
    """A wrong softplus."""
    before(name, what, lambda dt, dt_bias: biased(dt, dt_bias, soft), on, check)


def after(name, what, function, on=GATED, check="value[float32]"):
    """A wrong output from y, D, u and z."""
    TABLE.plant(on, name, what, check=check, after=function)


def opened(name, what, gate, on=GATED):
    """A wrong gate."""
    after(name, what, lambda y, D, u, z: gated(y, D, u, z, gate), on)


def _naive(v):
    """No digits below −17, and infinite above 88, in single precision."""
    return np.log(1 + np.exp(v))


def _switched(at, low=_naive):
    """v itself above `at`."""
    return lambda v: np.where(v > at, v, low(np.minimum(v, at)))


def _log1p(v):
    return np.log1p(np.exp(v))


softened("softplus_naive", "log(1 + e^v)", _naive)
softened(
    "softplus_naive_below",
    "log(1 + e^v) with a switch at 20: few digits below −3",
    _switched(20),
    ("mamba_scan", "mamba_step"),
)
softened("softplus_overflows", "log1p(e^v): infinite above 88", _log1p, SCANS)
softened("softplus_switched_at_5", "v itself above 5", _switched(5, _log1p), SCANS)
softened(
    "softplus_switched_below",
    "e^v for softplus below −5",
    lambda v: np.where(v < -5, np.exp(np.minimum(v, 0)), softplus(v)),
)
softened(
    "softplus_switched_at_20",
    "v itself above 20, in double precision",
    _switched(20, _log1p),
    (*ONE, "mamba_step"),
    "value[float64]",
)
softened("softplus_missing", "dt + dt_bias as it is", lambda v: v)
softened("softplus_twice", "softplus(softplus(v))", lambda v: softplus(softplus(v)), ONE)
softened("exponential", "e^v for softplus", lambda v: np.exp(np.minimum(v, 5)), OTHER)
softened("rectified", "max(v, 0) for softplus", lambda v: np.maximum(v, 0), ONE)
softened(
    "softplus_floor",
    "1e-4 added to the softplus",
    lambda v: softplus(v) + v.dtype.type(1e-4),
    OTHER,
)
softened(
    "softplus_in_bfloat16", "the softplus rounded to bfloat16", lambda v: bfloat16(softplus(v)), ONE
)
softened(
    "preactivation_in_bfloat16",
    "dt + dt_bias rounded to bfloat16",
    lambda v: softplus(bfloat16(v)),
    OTHER,
)
before(
    "bias_forgotten", "dt_bias left out", lambda dt, dt_bias: softplus(dt) + 0 * dt_bias[..., None]
)
before(
    "bias_after",
    "dt_bias added after the softplus",
    lambda dt, dt_bias: softplus(dt) + dt_bias[..., None],
)
before(
    "bias_twice",
    "dt_bias added twice",
    lambda dt, dt_bias: biased(dt + dt_bias[..., None], dt_bias),
    ONE,
)
before(
    "bias_subtracted",
    "dt_bias with the other sign",
    lambda dt, dt_bias: biased(dt, -dt_bias),
    OTHER,
)
before(
    "bias_of_first_channel",
    "one dt_bias for all channels",
    lambda dt, dt_bias: biased(dt, 0 * dt_bias + dt_bias[..., :1]),
)
before(
    "clamped_before",
    "dt + dt_bias clamped to [−10, 10] before the softplus",
    lambda dt, dt_bias: softplus(np.clip(dt + dt_bias[..., None], -10, 10)),
)

after("D_forgotten", "no D u", lambda y, D, u, z: y * silu(z) + 0 * D[..., None])
after("D_after_gate", "D u added after the gate", lambda y, D, u, z: y * silu(z) + D[..., None] * u)
after(
    "D_twice",
    "D u before and after the gate",
    lambda y, D, u, z: gated(y, D, u, z) + D[..., None] * u,
    ONE,
)
after("D_is_one", "u for D u", lambda y, D, u, z: gated(y, 0 * D + 1, u, z), OTHER)
after(
    "D_of_first_channel",
    "one D for all channels",
    lambda y, D, u, z: gated(y, 0 * D + D[..., :1], u, z),
    ONE,
)
after("D_conjugate", "D* u", lambda y, D, u, z: gated(y, D.conj(), u, z), OTHER, "value[complex64]")
after(
    "u_gated_too",
    "(C x + D u silu(z)) silu(z)",
    lambda y, D, u, z: gated(y, D, u * silu(z), z),
    OTHER,
)
after("gate_forgotten", "no gate", lambda y, D, u, z: gated(y, D, u, z, lambda z: 0 * z + 1))


def _sigmoid(z):
    """σ(z)."""
    return 1 / (1 + np.exp(-np.maximum(z, -80)))


def _tail(z):
    """z e^z/(1 + e^z): ∞/∞ above 88."""
    return z * np.exp(z) / (1 + np.exp(z))


def _gelu(z):
    """z σ(1.702 z)."""
    return z * _sigmoid(z.dtype.type(1.702) * z)


opened("sigmoid_gate", "σ(z) for silu(z)", _sigmoid)
opened("silu_overflows", "z e^z/(1 + e^z): NaN above 88", _tail, SCANS)
opened("silu_cut", "silu as 0 below −20", lambda z: np.where(z < -20, 0, silu(z)), GATED[:1])
opened("silu_linear", "silu as z above 8", lambda z: np.where(z > 8, z, silu(z)), OTHER[:1])
opened("gelu_gate", "z σ(1.702 z) for silu(z)", _gelu, ONE)
opened("silu_twice", "silu(silu(z))", lambda z: silu(silu(z)), OTHER)
opened(
    "hard_gate",
    "z clip(z/6 + 1/2, 0, 1) for silu(z)",
    lambda z: z * np.clip(z / 6 + z.dtype.type(0.5), 0, 1),
    OTHER,
)
