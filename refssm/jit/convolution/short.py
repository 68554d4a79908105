"""Short convolutions: a few taps over the newest inputs, across SIMD lanes.

Four neighbouring taps are taken in one pass, or one, over a part of the signal, with time across
SIMD lanes: the loops as LLVM's. A register of inputs is loaded once for each tap, and the sums of
products stay in registers. All signals have adjacent entries; the taps need not. There is one
kernel for each direction. The inputs before the first one are an array of any length, empty at
rest, so taps without an input are skipped. A single step is a convolution of length 1.
"""

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.convolution import (
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_PACKED,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.rows import Entries, adjacent, bit


def _array(context, builder, signature, values, i):
    """Argument i: the address of its entries, and its strides in bytes."""
    kind = signature.args[i]
    array = context.make_array(kind)(context, builder, values[i])
    return array.data, cgutils.unpack_tuple(builder, array.strides, kind.ndim)


def _taps(kind, data, strides, j, count):
    """Taps j, j + 1, …"""
    k = kind.row(data, strides[0])
    return [kind.load(k, kind.further(j, p), 1) for p in range(count)]


def _over(builder, kind, first, end):
    """Where loops begin and end, and how many entries they take at once: registers, then one."""
    length = builder.sub(end, first)
    border = builder.add(first, builder.and_(length, length.type(-kind.wide)))
    return (first, border, kind.wide), (border, end, 1)


def _push(count):
    """The intrinsic for this number of taps."""

    def write(context, builder, signature, values):
        kind = Entries(context, builder, signature.args[0].dtype)
        (y, _), (x, _), k = (_array(context, builder, signature, values, i) for i in (0, 1, 4))
        y, x, (first, end), j = kind.row(y), kind.row(x), values[2:4], values[5]
        taps, fresh = _taps(kind, *k, j, count), bit(context, builder, values[6])
        for begin, stop, width in _over(builder, kind, first, end):
            factors = [tap.repeated(width) for tap in taps]
            with cgutils.for_range_slice(builder, begin, stop, first.type(width)) as (i, _):
                total, place = kind.load(y, i, width).unless(fresh), builder.sub(i, j)
                for p, factor in enumerate(factors):
                    total += factor * kind.load(x, kind.further(place, -p), width)
                kind.store(total, y, i)
        return context.get_dummy_value()

    @intrinsic
    def push(typingctx, y, x, first, end, k, j, fresh):
        """y_i = Σ_p k_{j+p} x_{i−j−p}, added to y_i unless `fresh`, for i from `first` to `end`."""
        place = types.intp
        return types.void(y, x, place, place, k, place, types.boolean), write

    return push


def _pull_back(count):
    """The intrinsic for this number of taps."""

    def write(context, builder, signature, values):
        kind = Entries(context, builder, signature.args[0].dtype)
        (du, _), (x, _), (dy, _), k, (terms, steps) = (
            _array(context, builder, signature, values, i) for i in (0, 1, 2, 6, 8)
        )
        du, x, dy = kind.row(du), kind.row(x), kind.row(dy)
        (first, end, shift), j, (row, column) = values[3:6], values[7], values[9:11]
        taps = [tap.conj() for tap in _taps(kind, *k, j, count)]
        fresh = bit(context, builder, values[11])
        sums = [kind.zero(kind.wide) for _ in taps]
        for begin, stop, width in _over(builder, kind, first, end):
            factors = [tap.repeated(width) for tap in taps]
            kept = [cgutils.alloca_once_value(builder, s.value) for s in sums]
            with cgutils.for_range_slice(builder, begin, stop, first.type(width)) as (m, _):
                own, place = kind.load(x, m, width).conj(), builder.add(m, shift)
                total = kind.load(du, m, width).unless(fresh)
                for p, factor in enumerate(factors):
                    later = kind.load(dy, kind.further(place, p), width)
                    total += factor * later
                    builder.store((kind.of(builder.load(kept[p])) + own * later).value, kept[p])
                kind.store(total, du, m)
            sums = [kind.of(builder.load(s)).total() for s in kept]
        for p, entry in enumerate(sums):
            start = builder.mul(kind.further(row, p), steps[0])
            kind.store(entry, kind.moved(kind.row(terms), start), column)
        return context.get_dummy_value()

    @intrinsic
    def pull_back(typingctx, du, x, dy, first, end, shift, k, j, terms, row, column, fresh):
        """du_m = Σ_p k_{j+p}* dy_{m+shift+p}, added to du_m unless `fresh`, and
        terms[row + p, column] = Σ_m x_m* dy_{m+shift+p}, for m from `first` to `end`."""
        place = types.intp
        return types.void(
            du, x, dy, place, place, place, k, place, terms, place, place, types.boolean
        ), write

    return pull_back


push_four, push_one = _push(4), _push(1)
pull_back_four, pull_back_one = _pull_back(4), _pull_back(1)


TILE = 1024  # products that are added up lane by lane; such sums are added pairwise
BLOCK = 128  # products of a sum along packed sequences that are added before the others


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
def convolved(u, k, s0, y):
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
def convolved_back(dy, u, k, s0, du, dk, ds0):
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


def rest(u):
    """The empty array of inputs before the first."""
    return u[..., :0]


def newest(u, k, s0):
    """The last t inputs: a copy with all batch axes."""
    l, t = u.shape[-1], k.shape[-1]
    batch = np.broadcast_shapes(u.shape[:-1], k.shape[:-1], s0.shape[:-1])
    pieces = s0[..., min(l, t) :], u[..., max(0, l - t) :]
    return np.concatenate([np.broadcast_to(c, (*batch, c.shape[-1])) for c in pieces], axis=-1)


@mirror(SHORT_CONVOLUTION)
def short_convolution(u, k):
    return convolved(u, k, rest(u))


@mirror(SHORT_CONVOLUTION)
def short_convolution_vjp(dy, u, k):
    du, dk, _ = convolved_back(dy, u, k, rest(u))
    return unbroadcast_each((du, dk), (u, k))


@gufunc("(l),(t),(l)->(l)", flag=2)
def packed(u, k, resets, y):
    """Σ_j k_j u_{i−j} over the inputs since the last reset."""
    since = 0
    for i in range(u.size):
        since = 1 if resets[i] else since + 1
        y[i] = 0
        for j in range(min(k.size, since)):
            y[i] += k[j] * u[i - j]


@gufunc("(l),(l),(t),(l)->(l),(t)", flag=3)
def packed_back(dy, u, k, resets, du, dk):
    """du_{i−j} += k_j* dy_i and dk_j += u_{i−j}* dy_i, over the same pairs.

    The sums dk are blocks of BLOCK terms each: one after the other, l terms lose l roundings.
    """
    since, part = 0, np.zeros_like(k)
    for j in range(k.size):
        dk[j] = 0
    for i in range(u.size):
        since, du[i] = 1 if resets[i] else since + 1, 0
        for j in range(min(k.size, since)):
            du[i - j] += np.conj(k[j]) * dy[i]
            part[j] += np.conj(u[i - j]) * dy[i]
        if i % BLOCK == BLOCK - 1 or i == u.size - 1:
            for j in range(k.size):
                dk[j] += part[j]
                part[j] = 0


@mirror(SHORT_CONVOLUTION_PACKED)
def short_convolution_packed(u, k, resets):
    return packed(u, k, resets)


@mirror(SHORT_CONVOLUTION_PACKED)
def short_convolution_packed_vjp(dy, u, k, resets):
    return *unbroadcast_each(packed_back(dy, u, k, resets), (u, k)), None


@mirror(SHORT_CONVOLUTION_STATEFUL)
def short_convolution_stateful(u, k, s0):
    return convolved(u, k, s0), newest(u, k, s0)


@mirror(SHORT_CONVOLUTION_STATEFUL)
def short_convolution_stateful_vjp(dy, ds, u, k, s0):
    return pulled_back(dy, ds, u, k, s0)


def pulled_back(dy, ds, u, k, s0):
    """Gradients of the outputs and of the last inputs."""
    du, dk, ds0 = convolved_back(dy, u, k, s0)
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
    return convolved(u, k, s)[..., 0], newest(u, k, s)


@mirror(SHORT_CONVOLUTION_STEP)
def short_convolution_step_vjp(dy, ds_next, u, k, s):
    du, dk, ds = pulled_back(dy[..., None], ds_next, u[..., None], k, s)
    return du[..., 0], dk, ds
