"""Honest selective scans: by linear scans, step by step, as attention, in chunks, compiled."""

import numpy as np
from scipy.special import expit

from honest import Honest
from honest.scan.base import SCANS
from honest.selective_scan.back import HILLIS_STEELE, TREE, step_back
from honest.selective_scan.back import family as gradients
from honest.selective_scan.differences import by_differences
from honest.selective_scan.orders import (
    apart,
    attention,
    by_scan,
    half_and_half,
    on_one_axis,
    on_one_axis_back,
    one_state,
    segment_sums,
)
from refssm.conformance.planted.scan.right import hillis_steele
from refssm.conformance.planted.selective_scan.forms import MAMBA, biased, family, gated
from refssm.conformance.planted.selective_scan.right import differences, masked_sums
from refssm.selective_scan import (
    MAMBA_SCAN,
    MAMBA_SCAN_PACKED,
    MAMBA_SCAN_STATEFUL,
    MAMBA_STEP,
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_SCAN_STATEFUL,
    SELECTIVE_STEP,
)

OPERATORS = (
    SELECTIVE_SCAN,
    SELECTIVE_SCAN_STATEFUL,
    SELECTIVE_SCAN_PACKED,
    SELECTIVE_STEP,
    MAMBA_SCAN,
    MAMBA_SCAN_STATEFUL,
    MAMBA_SCAN_PACKED,
    MAMBA_STEP,
)


def switched_softplus(v):
    """As in PyTorch: v itself above 20, where e^{−20}/20 is below single precision."""
    return np.where(v > 20, v, np.log1p(np.exp(np.minimum(v, 20))))


def divided_silu(z):
    """z/(1 + e^{−z})."""
    return z / (1 + np.exp(-z))


def _single(case):
    """Declines double precision, as the switch at 20 is too inaccurate; gates of at least −87."""
    return None if case["dt"].dtype == np.float64 else _not_below(case)


def _not_below(case):
    """The case with gates z of at least −87, because e^{−z} overflows single precision at −89."""
    return {**case, "z": np.maximum(case["z"], case["z"].dtype.type(-87))}


def _finite_C(case):
    """Declines an infinite C, because C · (a x + v B), multiplied out, has ∞ − ∞."""
    return case if np.isfinite(case["C"]).all() else None


def _as_trained(case):
    """The case with dt from 1e-3 to 0.1 and real A from −16 to 0, where differences keep digits."""
    gated, A = "dt_bias" in case, case["A"]
    low, high = (-6.9, -2.3) if gated else (1e-3, 0.1)
    dt = np.clip(case["dt"], low, high).astype(case["dt"].dtype)
    kept = {"dt": dt, "A": np.clip(A.real, -16, 0).astype(A.dtype)}
    return {**case, **kept} | ({"dt_bias": 0 * case["dt_bias"]} if gated else {})


def _honest(name, functions, of=OPERATORS, vjps=None, **more):
    """One implementation of each of some operators, from functions by name."""
    pairs = [(op.name, functions[op.name]) for op in of]
    return [Honest(op, name, f, vjps and vjps[op], **more) for op, f in pairs]


SCANNING = [op for op in OPERATORS if op.leading]
STEPPING = [op for op in OPERATORS if not op.leading]
GATED = [op for op in OPERATORS if op.name in MAMBA]

IMPLEMENTATIONS = [
    *_honest("one_state", family(one_state), vjps=gradients(step_back)),
    *_honest(
        "on_one_axis", family(on_one_axis(one_state)), vjps=gradients(on_one_axis_back(step_back))
    ),
    *_honest("hillis_steele", family(by_scan(hillis_steele)), SCANNING, gradients(TREE)),
    *_honest("half_and_half", family(half_and_half), vjps=gradients(HILLIS_STEELE)),
    *_honest("attention", family(apart(attention)), SCANNING),
    *_honest("attention", family(attention), STEPPING, only=_finite_C),
]
for _name in ("tree", "chunked_64"):
    IMPLEMENTATIONS += _honest(_name, family(apart(by_scan(SCANS[_name]))), SCANNING)
_exact, _quick = (apart(segment_sums(64, sums)) for sums in (masked_sums, differences))
IMPLEMENTATIONS += _honest("segment_sums", family(_exact), SCANNING)
IMPLEMENTATIONS += _honest("differences", family(_quick), SCANNING, only=_as_trained)
IMPLEMENTATIONS += _honest(  # grade N where entries cancel
    "differences_16",
    family(segment_sums(16, differences)),
    [op for op in SCANNING if "resets" not in op.inputs],
    gradients(by_differences(16)),
    only=_as_trained,
)
_torch = family(
    one_state,
    lambda dt, dt_bias: biased(dt, dt_bias, switched_softplus),
    lambda y, D, u, z: gated(y, D, u, z, divided_silu),
)
_scipy = family(one_state, after=lambda y, D, u, z: (y + D[..., None] * u) * (z * expit(z)))
IMPLEMENTATIONS += _honest("as_torch", _torch, GATED, only=_single)
IMPLEMENTATIONS += _honest("expit", _scipy, GATED, only=_not_below)
IMPLEMENTATIONS.sort(key=lambda honest: honest.op)  # those judged on the same cases together
