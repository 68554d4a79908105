"""Numba mirrors of refssm.ssd.mamba2: the kernels of state-space duality, and rows around them.

Steps are few, one for each row of x, and NumPy computes them. In pieces the kernel multiplies by
them and gates (`called`); gradients, single steps and what is not finite have rows of their own.
"""

# pyright: reportCallIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.jit._compiling.gufunc import gufunc, started
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors import exponential
from refssm.jit._vectors.rows import adjacent
from refssm.jit.activations import beside
from refssm.jit.ssd.called import call_in_pieces
from refssm.jit.ssd.kernels import at_rest, in_pieces, pulled_back, scan
from refssm.ssd.mamba2 import MAMBA2, steps, steps_back

KINDS = ("f4", "f8")


@gufunc("(p),()->(p)", kinds=KINDS)
def _times(x, step, y):
    """step · x."""
    for p in range(x.size):
        y[p] = step[0] * x[p]


@part
def _gated_row(s, x, D, z, y):
    for p in range(s.size):
        y[p] = (s[p] + D * x[p]) * exponential.silu(z[p])


@gufunc("(p),(p),(),(p)->(p)", kinds=KINDS)
def _gated(s, x, D, z, y):
    """(s + D x) silu(z)."""
    if beside(s) and beside(x) and beside(z) and beside(y):
        _gated_row(adjacent(s), adjacent(x), D[0], adjacent(z), adjacent(y))
    else:
        _gated_row(s, x, D[0], z, y)


@part
def _gated_back_row(dy, s, x, D, z, ds, dz):
    for p in range(s.size):
        ds[p] = dy[p] * exponential.silu(z[p])
        dz[p] = (s[p] + D * x[p]) * dy[p] * exponential.silu_slope(z[p])


@gufunc("(p),(p),(p),(),(p)->(p),(p)", kinds=KINDS)
def _gated_back(dy, s, x, D, z, ds, dz):
    """The cotangents of s + D x and of z."""
    if beside(dy) and beside(s) and beside(x) and beside(z) and beside(ds) and beside(dz):
        rows = adjacent(dy), adjacent(s), adjacent(x)
        _gated_back_row(*rows, D[0], adjacent(z), adjacent(ds), adjacent(dz))
    else:
        _gated_back_row(dy, s, x, D[0], z, ds, dz)


def _given(arguments, dt_min, dt_max):
    """The arguments of the recurrence."""
    x, dt, A, B, C, _, _, dt_bias = arguments
    step = steps(dt + dt_bias[..., None], dt_min, dt_max)
    return _times(x, step), step * A[..., None], B, C


def _run(arguments, S0, resets, *, dt_min=0.0, dt_max=np.inf):
    x, dt, A, B, C, D, z, dt_bias = arguments
    start = started(at_rest(x, B), S0, resets, x.shape[-2])
    if in_pieces(x, B):
        step = steps(dt + dt_bias[..., None], dt_min, dt_max)
        y, S, finite = call_in_pieces(x, z, step, step * A[..., None], D, B, C, *start)
        if finite:
            return y, S
    s, S = scan(*_given(arguments, dt_min, dt_max), *start)
    y = _gated(s, x, D[..., None], z)
    return y, with_batch(S, 2, y.shape[:-2])


def _back(cotangents, arguments, S0, resets, *, dt_min=0.0, dt_max=np.inf):
    x, dt, A, B, _, D, z, dt_bias = arguments
    given = _given(arguments, dt_min, dt_max)
    dy, dS = (*cotangents, at_rest(x, B))[:2]
    S0, resets = started(at_rest(x, B), S0, resets, x.shape[-2])
    s, _ = scan(*given, S0, resets)
    ds, dz = _gated_back(dy, s, x, D[..., None], z)
    dv, dlog_a, dB, dC, dS0 = pulled_back(ds, dS, *given, S0, resets)
    v = dt + dt_bias[..., None]
    dx, dA, ddt = steps_back(dv, dlog_a, x, v, A[..., None], dt_min, dt_max)
    dx, dD = dx + D[..., None, None] * ds, (x * ds).sum((-2, -1))
    gradients = (dx, ddt, dA.sum(-1), dB, dC, dD, dz, ddt.sum(-1), dS0)
    return unbroadcast_each(gradients, (*arguments, S0))


(
    (mamba2_scan, mamba2_scan_vjp),
    (mamba2_scan_stateful, mamba2_scan_stateful_vjp),
    (mamba2_scan_packed, mamba2_scan_packed_vjp),
    (mamba2_scan_packed_stateful, mamba2_scan_packed_stateful_vjp),
    (mamba2_scan_states, mamba2_scan_states_vjp),
    (mamba2_step, mamba2_step_vjp),
) = MAMBA2.mirrors(_run, _back, mirror)
