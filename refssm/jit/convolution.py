"""Fast forms of refssm.convolution: sums in Numba, transforms by scipy.fft, rows by rows.

pocketfft, a compiled library, computes the transforms; their length is at least 2l − 1, with small
prime factors. Each thread takes a few rows through all steps, so that spectra stay in its cache.

Short convolutions take four neighbouring taps in one pass, or one, over a part of the signal, with
time across SIMD lanes: the loops as LLVM's. A register of inputs is loaded once for each tap, and
the sums of products stay in registers. All signals have adjacent entries; the taps need not. There
is one kernel for each direction. The inputs before the first one are an array of any length, empty
at rest, so taps without an input are skipped. A single step is a convolution of length 1.
"""

# pyright: reportOperatorIssue=false
# (scipy.fft dispatches)

from itertools import product
from math import prod

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic
from scipy import fft

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.convolution import (
    CAUSAL_CONVOLUTION,
    CAUSAL_CONVOLUTION_DIRECT,
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_PACKED,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._compiling.threads import over_threads
from refssm.jit._vectors.rows import Entries, adjacent, bit

ROWS = 8  # that pocketfft transforms together, one in each SIMD lane


@part
def _summed(u, k, y, sums):
    for i in range(u.size):
        sums[i] = 0
    for j in range(u.size):
        for i in range(u.size - j):
            sums[j + i] += sums.dtype.type(k[i]) * u[j]
    for i in range(u.size):
        y[i] = sums[i]


@gufunc("(l),(l)->(l)", kinds=("f4", "f8"))
def _real_sums(u, k, y):
    _summed(u, k, y, np.empty(u.size, np.float64))


@gufunc("(l),(l)->(l)", kinds=("c8", "c16"))
def _complex_sums(u, k, y):
    _summed(u, k, y, np.empty(u.size, np.complex128))


@mirror(CAUSAL_CONVOLUTION_DIRECT)
def causal_convolution_direct(u, k):
    """Single precision is summed in double."""
    return (_complex_sums if np.result_type(u, k).kind == "c" else _real_sums)(u, k)


@mirror(CAUSAL_CONVOLUTION_DIRECT)
def causal_convolution_direct_vjp(dy, u, k):
    """The same sum, time reversed."""
    backwards = dy[..., ::-1]
    du = causal_convolution_direct(backwards, k.conj())[..., ::-1]
    dk = causal_convolution_direct(backwards, u.conj())[..., ::-1]
    return unbroadcast_each((du, dk), (u, k))


class _Transform:
    """Transforms of `dtype`, long enough that l steps do not wrap around."""

    def __init__(self, l: int, dtype):
        self.l, self.dtype, real = l, np.dtype(dtype), np.dtype(dtype).kind != "c"
        self.n = fft.next_fast_len(2 * l - 1, real=real)
        self.forth, self.back = (fft.rfft, fft.irfft) if real else (fft.fft, fft.ifft)

    def spectrum(self, x):
        """The spectrum of some rows, on this thread."""
        return self.forth(x.astype(self.dtype, copy=False), self.n, workers=1)

    def signal(self, spectrum):
        """The first l steps of the rows with this spectrum, which is overwritten."""
        return self.back(spectrum, self.n, overwrite_x=True, workers=1)[..., : self.l]

    def spectra(self, x, batch):
        """The spectrum of x at a window of the batch; rows that several share are transformed
        once."""
        own = x.shape[:-1]
        if prod(own) == prod(batch):
            rows = x.reshape(*batch, self.l)
            return lambda window: self.spectrum(rows[window])
        length = self.n // 2 + 1 if self.dtype.kind == "f" else self.n
        whole = np.empty((*own, length), np.result_type(self.dtype, np.complex64))

        def transform(window):
            whole[window] = self.spectrum(x[window])

        over_threads(transform, _windows(own))
        shared = np.broadcast_to(whole, (*batch, whole.shape[-1]))
        return lambda window: shared[window]


def _windows(batch):
    """Indices of a few rows each, which together are the whole batch."""
    if not batch:
        return [()]
    axis = batch.index(max(batch))
    along = [[*range(length)] for length in batch]
    along[axis] = [slice(i, i + ROWS) for i in range(0, batch[axis], ROWS)]
    return [*product(*along)]


@mirror(CAUSAL_CONVOLUTION)
def causal_convolution(u, k):
    l, common = u.shape[-1], np.result_type(u, k)
    batch = np.broadcast_shapes(u.shape[:-1], k.shape[:-1])
    y = np.empty((*batch, l), common)
    if y.size:
        transform = _Transform(l, common)
        U, K = (transform.spectra(x, batch) for x in (u, k))

        def convolve(window):
            y[window] = transform.signal(U(window) * K(window))

        over_threads(convolve, _windows(batch))
    return y


@mirror(CAUSAL_CONVOLUTION)
def causal_convolution_vjp(dy, u, k):
    """Three transforms forth and two back."""
    l, common, batch = u.shape[-1], np.result_type(dy, u, k), dy.shape[:-1]
    du, dk = np.empty(dy.shape, common), np.empty(dy.shape, common)
    if dy.size:
        transform = _Transform(l, common)
        DY, U, K = (transform.spectra(x, batch) for x in (dy, u, k))

        def pull_back(window):
            spectrum = DY(window)
            du[window] = transform.signal(spectrum * K(window).conj())
            dk[window] = transform.signal(spectrum * U(window).conj())

        over_threads(pull_back, _windows(batch))
    return unbroadcast_each((du, dk), (u, k))


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


@gufunc("(l),(t),(l)->(l)", flag=2)
def _packed(u, k, resets, y):
    """Σ_j k_j u_{i−j} over the inputs since the last reset."""
    since = 0
    for i in range(u.size):
        since = 1 if resets[i] else since + 1
        y[i] = 0
        for j in range(min(k.size, since)):
            y[i] += k[j] * u[i - j]


@gufunc("(l),(l),(t),(l)->(l),(t)", flag=3)
def _packed_back(dy, u, k, resets, du, dk):
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
    return _packed(u, k, resets)


@mirror(SHORT_CONVOLUTION_PACKED)
def short_convolution_packed_vjp(dy, u, k, resets):
    return *unbroadcast_each(_packed_back(dy, u, k, resets), (u, k)), None


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
