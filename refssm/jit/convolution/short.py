"""Numba mirrors of refssm.convolution.short: taps outermost, time across SIMD lanes.

One kernel for each direction. The inputs before the first one are an array of any length, empty at
rest, so taps without an input are skipped. A single step is a convolution of length 1.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._operator import COMPILED_TYPES
from refssm.broadcasting import unbroadcast_each
from refssm.convolution import (
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)
from refssm.jit._gufunc import gufunc


@gufunc("(l),(t),(s)->(l)")
def _convolved(u, k, s0, y):
    """y_i = Σ_j k_j u_{i−j}, with u_{−1}, … u_{−s} from s0, the newest last."""
    s = s0.size
    past, sums = np.empty(s + u.size, u.dtype), np.empty(u.size, u.dtype)
    for i in range(s):
        past[i] = s0[i]
    for i in range(u.size):
        past[s + i], sums[i] = u[i], 0
    for j in range(k.size):
        first = min(max(0, j - s), u.size)
        delayed, later = past[max(0, s - j) :], sums[first:]  # an index i − j would prevent SIMD
        for i in range(later.size):
            later[i] += k[j] * delayed[i]
    for i in range(u.size):
        y[i] = sums[i]


@gufunc("(l),(l),(t),(s)->(l),(t),(s)")
def _convolved_back(dy, u, k, s0, du, dk, ds0):
    """du_i = Σ_j k_j* dy_{i+j}, dk_j = Σ_i u_{i−j}* dy_i, and du_{−1}, … du_{−s} as ds0."""
    s = s0.size
    past, sums = np.empty(s + u.size, u.dtype), np.empty(s + u.size, u.dtype)
    terms = np.empty(u.size, u.dtype)
    for i in range(s):
        past[i], sums[i] = s0[i], 0
    for i in range(u.size):
        past[s + i], sums[s + i] = u[i], 0
    for j in range(k.size):
        k_j, first = np.conj(k[j]), min(max(0, j - s), u.size)
        delayed, earlier, later = past[max(0, s - j) :], sums[max(0, s - j) :], dy[first:]
        for i in range(later.size):
            earlier[i] += k_j * later[i]
        for i in range(later.size):
            terms[i] = np.conj(delayed[i]) * later[i]
        left = later.size
        while left > 1:  # add halves pairwise: a running sum cannot use SIMD
            second = terms[(left + 1) // 2 :]
            for i in range(left // 2):
                terms[i] += second[i]
            left = (left + 1) // 2
        dk[j] = terms[0] if left else 0
    for i in range(s):
        ds0[i] = sums[i]
    for i in range(u.size):
        du[i] = sums[s + i]


def _rest(u):
    """The empty array of inputs before the first."""
    return u[..., :0]


def _newest(u, k, s0):
    """The last t inputs: a copy with all batch axes."""
    l, t = u.shape[-1], k.shape[-1]
    batch = np.broadcast_shapes(u.shape[:-1], k.shape[:-1], s0.shape[:-1])
    pieces = s0[..., min(l, t) :], u[..., max(0, l - t) :]
    return np.concatenate([np.broadcast_to(c, (*batch, c.shape[-1])) for c in pieces], axis=-1)


def short_convolution(u, k):
    """Mirror of refssm.short_convolution."""
    return _convolved(u, k, _rest(u))


def short_convolution_vjp(dy, u, k):
    """Mirror of refssm.short_convolution_vjp."""
    du, dk, _ = _convolved_back(dy, u, k, _rest(u))
    return unbroadcast_each((du, dk), (u, k))


def short_convolution_stateful(u, k, s0):
    """Mirror of refssm.short_convolution_stateful."""
    return _convolved(u, k, s0), _newest(u, k, s0)


def short_convolution_stateful_vjp(dy, ds, u, k, s0):
    """Mirror of refssm.short_convolution_stateful_vjp."""
    return _pulled_back(dy, ds, u, k, s0)


def _pulled_back(dy, ds, u, k, s0):
    """Gradients of the outputs and of the last inputs."""
    du, dk, ds0 = _convolved_back(dy, u, k, s0)
    l, t = u.shape[-1], k.shape[-1]
    kept = min(l, t)  # this many of the last inputs are in u, the others in s0
    du, ds0 = (c.astype(np.result_type(c, ds), copy=False) for c in (du, ds0))
    du[..., l - kept :] += ds[..., t - kept :]
    ds0[..., kept:] += ds[..., : t - kept]
    return unbroadcast_each((du, dk, ds0), (u, k, s0))


def short_convolution_step(u, k, s):
    """Mirror of refssm.short_convolution_step: a convolution of length 1."""
    u = u[..., None]
    return _convolved(u, k, s)[..., 0], _newest(u, k, s)


def short_convolution_step_vjp(dy, ds_next, u, k, s):
    """Mirror of refssm.short_convolution_step_vjp."""
    du, dk, ds = _pulled_back(dy[..., None], ds_next, u[..., None], k, s)
    return du[..., 0], dk, ds


short_convolution = SHORT_CONVOLUTION.checked(short_convolution, COMPILED_TYPES)
short_convolution_vjp = SHORT_CONVOLUTION.checked_vjp(short_convolution_vjp, COMPILED_TYPES)
short_convolution_stateful = SHORT_CONVOLUTION_STATEFUL.checked(
    short_convolution_stateful, COMPILED_TYPES
)
short_convolution_stateful_vjp = SHORT_CONVOLUTION_STATEFUL.checked_vjp(
    short_convolution_stateful_vjp, COMPILED_TYPES
)
short_convolution_step = SHORT_CONVOLUTION_STEP.checked(short_convolution_step, COMPILED_TYPES)
short_convolution_step_vjp = SHORT_CONVOLUTION_STEP.checked_vjp(
    short_convolution_step_vjp, COMPILED_TYPES
)
