"""Numba mirrors of refssm.convolution: four taps in one pass, time across SIMD lanes.

One kernel for each direction. The inputs before the first one are an array of any length, empty at
rest, so taps without an input are skipped. A single step is a convolution of length 1.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.convolution import (
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.rows import adjacent
from refssm.jit.convolution.taps import pull_back_four, pull_back_one, push_four, push_one

TILE = 1024  # products that are added up lane by lane; such sums are added pairwise


@part
def _vector(x):
    """x for SIMD; a copy, which owns its memory, if its entries are not adjacent."""
    if x.size > 1 and x.strides[0] != x.itemsize:
        return x.copy()
    return adjacent(x)


@part
def _cleared(x):
    for i in range(x.size):
        x[i] = 0


@part
def _past_added(k, s0, y):
    """Add the taps on the inputs before the first: k_j u_{i−j} for i < j."""
    s = s0.size
    for j in range(1, k.size):
        first, last = max(0, j - s), min(j, y.size)
        if first < last:
            for i in range(first, last):
                y[i] += k[j] * s0[s + i - j]


@gufunc("(l),(t),(s)->(l)")
def _convolved(u, k, s0, y):
    """y_i = Σ_j k_j u_{i−j}, with u_{−1}, … u_{−s} from s0, the newest last."""
    l, t, x, j = u.size, k.size, _vector(u), 0
    if t == 0:
        _cleared(y)
    while j < min(t, l):
        taps = 4 if t - j >= 4 and l - j >= 4 else 1
        for i in range(j, j + taps - 1):  # before here, some of these taps have no earlier input
            total = y[i] if j else y.dtype.type(0)
            for p in range(i - j + 1):
                total += k[j + p] * x[i - j - p]
            y[i] = total
        if taps == 4:
            push_four(y, x, j + 3, l, k, j, j == 0)
        else:
            push_one(y, x, j, l, k, j, j == 0)
        j += taps
    _past_added(k, s0, y)


@part
def _pairwise(terms, left):
    """The sum of the first `left` terms, by halves."""
    while left > 1:
        half = (left + 1) // 2
        for i in range(left // 2):
            terms[i] += terms[half + i]
        left = half
    return terms[0]


@gufunc("(l),(l),(t),(s)->(l),(t),(s)")
def _convolved_back(dy, u, k, s0, du, dk, ds0):
    """du_i = Σ_j k_j* dy_{i+j}, dk_j = Σ_i u_i* dy_{i+j}, and du_{−1}, … du_{−s} as ds0."""
    l, t, s, x, later, past = u.size, k.size, s0.size, _vector(u), _vector(dy), _vector(s0)
    tiles = (l + TILE - 1) // TILE
    terms = np.empty((4, tiles + 2), dy.dtype)
    _cleared(ds0)
    if t == 0:
        _cleared(du)
    j = 0
    while j < t:
        taps = 4 if t - j >= 4 and l >= j + 4 else 1
        end = max(0, l - j - taps + 1)  # from here on, some of these taps have no later output
        for tile in range(tiles):
            first, stop = min(end, tile * TILE), min(end, (tile + 1) * TILE)
            if taps == 4:
                pull_back_four(du, x, later, first, stop, j, k, j, terms, 0, tile, j == 0)
            else:
                pull_back_one(du, x, later, first, stop, j, k, j, terms, 0, tile, j == 0)
        for p in range(taps):
            terms[p, tiles] = 0
        for i in range(end, max(end, l - j)):
            du[i] = 0 if j == 0 else du[i]
            for p in range(min(taps, l - j - i)):
                du[i] += np.conj(k[j + p]) * later[i + j + p]
                terms[p, tiles] += np.conj(x[i]) * later[i + j + p]
        for p in range(taps):
            q = j + p  # the inputs before the first
            first, stop = min(s, max(0, s - q)), max(0, min(s, s - q + l))
            pull_back_one(ds0, past, later, first, stop, q - s, k, q, terms, p, tiles + 1, False)
            dk[q] = _pairwise(terms[p], tiles + 2)
        j += taps


def _rest(u):
    """The empty array of inputs before the first."""
    return u[..., :0]


def _newest(u, k, s0):
    """The last t inputs: a copy with all batch axes."""
    l, t = u.shape[-1], k.shape[-1]
    batch = np.broadcast_shapes(u.shape[:-1], k.shape[:-1], s0.shape[:-1])
    pieces = s0[..., min(l, t) :], u[..., max(0, l - t) :]
    return np.concatenate([np.broadcast_to(c, (*batch, c.shape[-1])) for c in pieces], axis=-1)


@mirror(SHORT_CONVOLUTION)
def short_convolution(u, k):
    return _convolved(u, k, _rest(u))


@mirror(SHORT_CONVOLUTION)
def short_convolution_vjp(dy, u, k):
    du, dk, _ = _convolved_back(dy, u, k, _rest(u))
    return unbroadcast_each((du, dk), (u, k))


@mirror(SHORT_CONVOLUTION_STATEFUL)
def short_convolution_stateful(u, k, s0):
    return _convolved(u, k, s0), _newest(u, k, s0)


@mirror(SHORT_CONVOLUTION_STATEFUL)
def short_convolution_stateful_vjp(dy, ds, u, k, s0):
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


@mirror(SHORT_CONVOLUTION_STEP)
def short_convolution_step(u, k, s):
    """A convolution of length 1."""
    u = u[..., None]
    return _convolved(u, k, s)[..., 0], _newest(u, k, s)


@mirror(SHORT_CONVOLUTION_STEP)
def short_convolution_step_vjp(dy, ds_next, u, k, s):
    du, dk, ds = _pulled_back(dy[..., None], ds_next, u[..., None], k, s)
    return du[..., 0], dk, ds
