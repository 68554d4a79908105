"""Planted bugs in Mamba's parts around the scan: softplus, bias, limits, D, gate."""

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16
from refssm.conformance.planted.selective_scan import operators as on
from refssm.conformance.planted.selective_scan.forms import biased, gated, silu, softplus
from refssm.conformance.planted.selective_scan.programs import Around, Bugs

GATES = Bugs()
plant = GATES.plant
SCANS = on.GATED[:3]  # one step meets few extremes


def softened(soft):
    """Use a wrong softplus."""
    return Around(before=lambda dt, dt_bias: biased(dt, dt_bias, soft))


def _naive(v):
    """log(1 + e^v): no digits below −17 and infinite above 88 in single precision."""
    return np.log(1 + np.exp(v))


def _log1p(v):
    return np.log1p(np.exp(v))


def _switched(at, low):
    """v itself above `at`, else low(v)."""
    return lambda v: np.where(v > at, v, low(np.minimum(v, at)))


def _of_first_channel(v):
    return 0 * v + v[..., :1]


plant(on.GATED,
      ("softplus_naive", "log(1 + e^v)", softened(_naive)),
      ("softplus_switched_below", "e^v for softplus below −5",
       softened(lambda v: np.where(v < -5, np.exp(np.minimum(v, 0)), softplus(v)))),
      ("softplus_missing", "dt + dt_bias as it is", softened(lambda v: v)),
      ("bias_forgotten", "dt_bias left out", {"dt_bias": lambda b: 0 * b}),
      ("bias_after", "dt_bias added after the softplus",
       Around(before=lambda dt, dt_bias: softplus(dt) + dt_bias[..., None])),
      ("bias_of_first_channel", "one dt_bias for all channels", {"dt_bias": _of_first_channel}),
      ("clamped_before", "dt + dt_bias clamped to [−10, 10] before the softplus",
       softened(lambda v: softplus(np.clip(v, -10, 10)))))  # fmt: skip
plant(SCANS,
      ("softplus_overflows", "log1p(e^v): infinite above 88", softened(_log1p)))  # fmt: skip
plant(SCANS,  # in single precision cumulative sums of large steps lose as many digits
      ("softplus_switched_at_5", "v itself above 5", softened(_switched(5, _log1p))),
      by="value[float64]")  # fmt: skip
plant(on.GATED,
      ("softplus_switched_at_7", "v itself above 7", softened(_switched(7, _log1p))),
      by="value[float64]")  # fmt: skip
plant((*on.GATED, *on.GATED_PIECES),
      ("softplus_naive_below", "log(1 + e^v) with a switch at 20: few digits below −3",
       softened(_switched(20, _naive))))  # fmt: skip
plant(on.GATED_PIECES, ("softplus_naive", "log(1 + e^v)", softened(_naive)))
plant((*on.ONE, "mamba_step"),
      ("softplus_switched_at_20", "v itself above 20, in double precision",
       softened(_switched(20, _log1p))), by="value[float64]")  # fmt: skip
plant(on.ONE,
      ("softplus_twice", "softplus(softplus(v))", softened(lambda v: softplus(softplus(v)))),
      ("rectified", "max(v, 0) for softplus", softened(lambda v: np.maximum(v, 0))),
      ("softplus_in_bfloat16", "the softplus rounded to bfloat16",
       softened(lambda v: bfloat16(softplus(v)))),
      ("bias_twice", "dt_bias added twice", {"dt_bias": lambda b: 2 * b}))  # fmt: skip
plant(on.OTHER,
      ("exponential", "e^v for softplus", softened(lambda v: np.exp(np.minimum(v, 5)))),
      ("softplus_floor", "1e-4 added to the softplus",
       softened(lambda v: softplus(v) + v.dtype.type(1e-4))),
      ("preactivation_in_bfloat16", "dt + dt_bias rounded to bfloat16",
       softened(lambda v: softplus(bfloat16(v)))),
      ("bias_subtracted", "dt_bias with the other sign", {"dt_bias": np.negative}))  # fmt: skip


def opened(gate):
    """Use a wrong gate."""
    return Around(after=lambda y, D, u, z: gated(y, D, u, z, gate))


def _sigmoid(z):
    """σ(z)."""
    return 1 / (1 + np.exp(-np.maximum(z, -80)))


plant(on.GATED,
      ("D_forgotten", "no D u", {"D": lambda D: 0 * D}),
      ("D_after_gate", "D u added after the gate",
       Around(after=lambda y, D, u, z: y * silu(z) + D[..., None] * u)),
      ("gate_forgotten", "no gate", opened(np.ones_like)),
      ("sigmoid_gate", "σ(z) for silu(z)", opened(_sigmoid)))  # fmt: skip
plant(on.ONE,
      ("D_twice", "D u before and after the gate",
       Around(after=lambda y, D, u, z: gated(y, D, u, z) + D[..., None] * u)),
      ("D_of_first_channel", "one D for all channels", {"D": _of_first_channel}),
      ("gelu_gate", "z σ(1.702 z) for silu(z)",
       opened(lambda z: z * _sigmoid(z.dtype.type(1.702) * z))))  # fmt: skip
plant(on.OTHER,
      ("D_is_one", "u for D u", {"D": np.ones_like}),
      ("u_gated_too", "(C x + D u silu(z)) silu(z)",
       Around(after=lambda y, D, u, z: gated(y, D, u * silu(z), z))),
      ("silu_twice", "silu(silu(z))", opened(lambda z: silu(silu(z)))),
      ("hard_gate", "z clip(z/6 + 1/2, 0, 1) for silu(z)",
       opened(lambda z: z * np.clip(z / 6 + z.dtype.type(0.5), 0, 1))))  # fmt: skip
plant(on.OTHER, ("D_conjugate", "D* u", {"D": np.conj}), by="value[complex64]")
plant(SCANS, ("silu_overflows", "z e^z/(1 + e^z): NaN above 88",
              opened(lambda z: z * np.exp(z) / (1 + np.exp(z)))))  # fmt: skip
plant(on.ONE[:1], ("silu_cut", "silu as 0 below −20",
                   opened(lambda z: np.where(z < -20, 0, silu(z)))))  # fmt: skip
plant(on.OTHER[:1], ("silu_linear", "silu as z above 6",
                     opened(lambda z: np.where(z > 6, z, silu(z)))))  # fmt: skip
