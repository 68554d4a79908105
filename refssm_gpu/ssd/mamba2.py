"""CuPy mirrors of refssm.ssd.mamba2: the kernels of `passes`, and array code around them.

Softplus, limits, skip and gate are elementwise and take a launch each. For float16 and bfloat16 all
is float32 inside, rounded once at the end: Δ x is not rounded before the kernels.
"""

from functools import partial

import numpy as np

from refssm.ssd.mamba2 import MAMBA2
from refssm_gpu._algebra.activations import sigmoid, silu, silu_slope, softplus
from refssm_gpu._launching.arrays import (
    Array,
    accumulated,
    common,
    in_type_of,
    namespace,
    unbroadcast_and_round,
)
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu.ssd.passes import scan, scan_back

HALVES_TOO = partial(mirror, types=WITH_HALVES)


def _inside(*arrays: Array | None) -> list[Array]:
    """The arrays in the type of the computation; None stays."""
    kind = accumulated(common(*arrays))
    return [None if x is None else x.astype(kind, copy=False) for x in arrays]


def _steps(v: Array, dt_min: float, dt_max: float) -> Array:
    """clip(softplus(v), dt_min, dt_max)."""
    return namespace(v).clip(softplus(v), dt_min, dt_max)


def _given(arguments, dt_min, dt_max) -> tuple[Array, ...]:
    """The arguments of the recurrence."""
    x, dt, A, B, C, _, _, dt_bias = arguments
    step = _steps(dt + dt_bias[..., None], dt_min, dt_max)
    return step[..., None] * x, step * A[..., None], B, C


def _run(arguments, S0, resets, *, dt_min=0.0, dt_max=np.inf):
    *inside, start = _inside(*arguments, S0)
    x, *_, D, z, _ = inside
    X, log_a, B, C = _given(inside, dt_min, dt_max)
    y, S = scan(X, log_a, B, C, start, resets, ends=S0 is not None)
    y = in_type_of((y + D[..., None, None] * x) * silu(z), *arguments)
    if S0 is None:
        return (y,)
    xp, core = namespace(S), S.shape[-2:]
    return y, +in_type_of(xp.broadcast_to(S, (*y.shape[:-2], *core)), *arguments, S0)


def _back(cotangents, arguments, S0, resets, *, dt_min=0.0, dt_max=np.inf):
    dy, dS, *inside, start = _inside(*(*cotangents, None)[:2], *arguments, S0)
    x, dt, A, _, _, D, z, dt_bias = inside
    X, log_a, B, C = _given(inside, dt_min, dt_max)
    xp, rank = namespace(x), (-2, -1)
    s = scan(X, log_a, B, C, start, resets)[0] + D[..., None, None] * x
    ds, dz = dy * silu(z), s * dy * silu_slope(z)
    X = xp.broadcast_to(X, ds.shape)  # ds may have axes that none of the recurrence has
    dv, dlog_a, dB, dC, dS0 = scan_back(ds, dS, X, log_a, B, C, start, resets)
    v = dt + dt_bias[..., None]
    soft, step = softplus(v), _steps(v, dt_min, dt_max)
    dstep = xp.sum(x * dv, axis=-1) + A[..., None] * dlog_a
    beyond = (soft < dt_min) | (soft > dt_max)
    ddt = xp.where(beyond, xp.zeros_like(dstep), dstep) * sigmoid(v)
    dx, dA = step[..., None] * dv + D[..., None, None] * ds, xp.sum(step * dlog_a, axis=-1)
    dD, db = xp.sum(x * ds, axis=rank), xp.sum(ddt, axis=-1)
    made = (dx, ddt, dA, dB, dC, dD, dz, db, dS0)
    primals = (*arguments, *(() if S0 is None else (S0,)))
    return unbroadcast_and_round(made[: len(primals)], primals)


(
    (mamba2_scan, mamba2_scan_vjp),
    (mamba2_scan_stateful, mamba2_scan_stateful_vjp),
    (mamba2_scan_packed, mamba2_scan_packed_vjp),
    (mamba2_scan_packed_stateful, mamba2_scan_packed_stateful_vjp),
    (mamba2_scan_states, mamba2_scan_states_vjp),
    (mamba2_step, mamba2_step_vjp),
) = MAMBA2.mirrors(_run, _back, HALVES_TOO)
