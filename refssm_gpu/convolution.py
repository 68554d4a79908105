"""CuPy mirrors of refssm.convolution: transforms by cuFFT, direct sums by a kernel.

A causal convolution is padded with zeros to a length that cuFFT likes; a circular one has length l,
whatever its factors are. Short convolutions, and the direct sum with as many taps as inputs, take
one launch for the outputs and one for all gradients; the parts of a tap's gradient are added after.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from refssm.convolution import (
    BIDIRECTIONAL_CONVOLUTION,
    BIDIRECTIONAL_CONVOLUTION_SHIFTED,
    CAUSAL_CONV1D,
    CAUSAL_CONV1D_PACKED,
    CAUSAL_CONV1D_STATEFUL,
    CAUSAL_CONV1D_STEP,
    CAUSAL_CONVOLUTION,
    CAUSAL_CONVOLUTION_DIRECT,
    CIRCULAR_CONVOLUTION,
    SHORT_CONVOLUTION,
    SHORT_CONVOLUTION_PACKED,
    SHORT_CONVOLUTION_STATEFUL,
    SHORT_CONVOLUTION_STEP,
)
from refssm_gpu._algebra.activations import silu, silu_slope
from refssm_gpu._algebra.parts import along, batch_of, conj
from refssm_gpu._algebra.transforms import good_length, half_spectrum, real_signal
from refssm_gpu._launching.arrays import (
    HALVES,
    Array,
    accumulated,
    blocks,
    common,
    empty,
    folded,
    is_complex,
    namespace,
    unbroadcast,
    unbroadcast_each,
)
from refssm_gpu._launching.batch import batch
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu._launching.kernel import FIELDS, Kernel, instances, record


@mirror(CAUSAL_CONVOLUTION)
def causal_convolution(u, k):
    """Padded to 2l−1 or the next product of 2, 3, 5 and 7."""
    return _convolved(u, k, good_length(2 * u.shape[-1] - 1))[..., : u.shape[-1]]


@mirror(CAUSAL_CONVOLUTION)
def causal_convolution_vjp(dy, u, k):
    """Three transforms forward, two back."""
    return _gradients(_correlated(dy, u, k, good_length(2 * u.shape[-1] - 1)), (u, k))


@mirror(CIRCULAR_CONVOLUTION)
def circular_convolution(u, k):
    l = u.shape[-1]
    return _convolved(u, k, max(l, 1))[..., :l]  # a transform needs at least one point


@mirror(CIRCULAR_CONVOLUTION)
def circular_convolution_vjp(dy, u, k):
    return _gradients(_correlated(dy, u, k, max(u.shape[-1], 1)), (u, k))


# Bidirectional: both kernels as one, on a circle
#
# Lag −j is lag p − j on a circle of p ≥ 2l − 1 points, so the kernel of the future goes to the end
# of the period, backwards, and one convolution replaces two.


@mirror(BIDIRECTIONAL_CONVOLUTION)
def bidirectional_convolution(u, k, kr):
    return _both_ways(u, k, kr, 0)


@mirror(BIDIRECTIONAL_CONVOLUTION)
def bidirectional_convolution_vjp(dy, u, k, kr):
    return _both_ways_back(dy, u, k, kr, 0)


@mirror(BIDIRECTIONAL_CONVOLUTION_SHIFTED)
def bidirectional_convolution_shifted(u, k, kr):
    return _both_ways(u, k, kr, 1)


@mirror(BIDIRECTIONAL_CONVOLUTION_SHIFTED)
def bidirectional_convolution_shifted_vjp(dy, u, k, kr):
    return _both_ways_back(dy, u, k, kr, 1)


def _both_ways(u: Array, k: Array, kr: Array, shift: int) -> Array:
    p = good_length(2 * u.shape[-1] - 1)
    return _convolved(u, _around(k, kr, shift, p), p)[..., : u.shape[-1]]


def _around(k: Array, kr: Array, shift: int, p: int) -> Array:
    """κ_j = k_j at lags from 0, and k'_j at lag −j − shift; without shift both meet at lag 0.

    The last `shift` taps of k' reach no output. A product with 0 lets their NaN reach all outputs,
    as in the reference.
    """
    xp, l = namespace(k, kr), k.shape[-1]
    k, kr = (along(x, batch_of((k, kr), (1, 1)), 1) for x in _of_one_type(k, kr))
    meeting = kr[..., :1] if not shift else 0 * kr[..., -1:]
    future = xp.flip(kr[..., 1:] if not shift else kr[..., :-1], axis=-1)
    gap = xp.zeros((*k.shape[:-1], p - l - future.shape[-1]), dtype=k.dtype)
    return xp.concat([k[..., :1] + meeting, k[..., 1:], gap, future], axis=-1)


def _both_ways_back(dy: Array, u: Array, k: Array, kr: Array, shift: int) -> tuple[Array, ...]:
    """The gradient of κ, cut up and turned around; it exists for the last taps, but is zero."""
    l, p = u.shape[-1], good_length(2 * u.shape[-1] - 1)
    kernel = _around(k, kr, shift, p)
    du, dkernel = _correlated(dy, u, kernel, p)
    xp = namespace(dkernel)
    future = xp.flip(dkernel[..., p - max(l - 1, 0) :], axis=-1)  # lags −1, −2, …
    edge = dkernel[..., : min(l, 1)]
    own = xp.concat([future, 0 * edge] if shift else [edge, future], axis=-1)
    return *_gradients((du, dkernel), (u, k)), unbroadcast(own, kr)


# Circular convolution and its gradients on the period p, to which the others reduce
#
#     y = F⁻¹(F(u) F(κ)),   du = F⁻¹(F(κ)* F(dy)),   dκ = F⁻¹(F(u)* F(dy))
#
# Each array is transformed once. The gradient of an array with fewer leading axes is summed over
# the batch before its inverse transform, so that is as small as the array.


def _convolved(u: Array, k: Array, p: int) -> Array:
    """Σ_j k_{(i−j) mod p} u_j, i < p; arrays shorter than p end with zeros."""
    u, k = _of_one_type(u, k)
    return _signal(_spectrum(u, p) * _spectrum(k, p), u, p)


def _correlated(dy: Array, u: Array, k: Array, p: int) -> tuple[Array, Array]:
    """Gradients of `_convolved` with respect to u and k, p entries each, before their real part."""
    dy, u, k = _of_one_type(dy, u, k)
    spectrum = _spectrum(dy, p)
    both = (conj(_spectrum(x, p)) * spectrum for x in (k, u))
    summed = (folded(d, (*x.shape[:-1], d.shape[-1])) for d, x in zip(both, (u, k), strict=True))
    du, dk = (_signal(d, u, p) for d in summed)
    return du, dk


def _of_one_type(*arrays: Array) -> list[Array]:
    """The arrays in the type to which they promote."""
    xp = namespace(*arrays)
    common = xp.result_type(*arrays)
    return [xp.astype(x, common, copy=False) for x in arrays]


def _gradients(cotangents: Sequence[Array], primals: Sequence[Array]) -> tuple[Array, ...]:
    """The first entries of each, real for a real argument."""
    each = zip(cotangents, primals, strict=True)
    return tuple(unbroadcast(d[..., : x.shape[-1]], x) for d, x in each)


def _spectrum(u: Array, p: int) -> Array:
    """The transform; a real array's second half is conjugate to the first and left out."""
    xp, compound = namespace(u), is_complex(u)
    if 0 in u.shape:  # cuFFT has no plan for nothing
        kind = xp.result_type(u, xp.complex64)
        return xp.zeros((*u.shape[:-1], p if compound else p // 2 + 1), dtype=kind)
    return xp.fft.fft(u, n=p) if compound else half_spectrum(u, p)


def _signal(spectrum: Array, like: Array, p: int) -> Array:
    """The inverse of `_spectrum`, real if `like` is."""
    xp = namespace(spectrum)
    if 0 in spectrum.shape:
        return xp.zeros((*spectrum.shape[:-1], p), dtype=like.dtype)
    return xp.fft.ifft(spectrum, n=p) if is_complex(like) else real_signal(spectrum, p)


# Short kernels, and the direct sum


TILE = 1024  # outputs of a block
KINDS = instances((*FIELDS, *HALVES))
# convolution_sizes in short_convolution.cuh
_SIZES = record("l", "taps", "past", "inner", mask=np.uint32)
_FORWARD = Kernel(
    "convolution/short_convolution.cuh",
    "short_convolution",
    KINDS,
    128,
    registers=128,
    bound="memory",
)
_BACK = replace(_FORWARD, name="short_convolution_back")


def _prepared(u, k, s0, *beside):
    """Arguments of one type and their batch, and the sizes for the kernel."""
    kind = common(u, k, s0, *beside)
    rows = batch((u, k, s0), (1, 1, 1), (kind, kind, kind))
    past = 0 if s0 is None else s0.shape[-1]
    sizes = np.array([(u.shape[-1], k.shape[-1], past, rows.inner, rows.mask)], _SIZES)
    return kind, rows, sizes


def _direct(u, k, s0=None):
    """y_i = Σ_j k_j u_{i−j}, with the inputs before the first in s0, the newest at its end."""
    kind, rows, sizes = _prepared(u, k, s0)
    y = empty((rows.rows, u.shape[-1]), kind, u)
    grid = (rows.rows * blocks(u.shape[-1], TILE),)
    _FORWARD((kind.name,), grid, *rows.arrays, y, sizes)
    return rows.unfolded(y, u.shape[-1:])


def _direct_back(dy, u, k, s0=None, ds=None):
    """Gradients of the outputs, and of the last inputs if `ds` is given: (du, dk, ds0)."""
    kind, rows, sizes = _prepared(u, k, s0, dy, ds)
    (l,), (t,), past = u.shape[-1:], k.shape[-1:], int(sizes["past"][0])
    tiles = blocks(l + past, TILE)
    du, ds0 = (empty((rows.rows, size), kind, u) for size in (l, past))
    dk = namespace(u).zeros((rows.rows, tiles, t), dtype=accumulated(kind))
    dy, grid = rows.every_row(dy, 1, kind), (rows.rows * tiles,)
    _BACK((kind.name,), grid, dy, *rows.arrays, du, dk, ds0, sizes)
    du, ds0 = rows.unfolded(du, (l,)), rows.unfolded(ds0, (past,))
    dk = rows.unfolded(dk.sum(1).astype(kind), (t,))
    if ds is not None:
        kept = min(l, t)  # this many of the last inputs are in u, the others in s0
        du[..., l - kept :] += ds[..., t - kept :]
        ds0[..., kept:] += ds[..., : t - kept]
    return du, dk, ds0


def _newest(u, k, s0):
    """The last t inputs: a copy with all batch axes."""
    xp, l, t = namespace(u), u.shape[-1], k.shape[-1]
    shape = np.broadcast_shapes(u.shape[:-1], k.shape[:-1], s0.shape[:-1])
    pieces = s0[..., min(l, t) :], u[..., max(0, l - t) :]
    return xp.concat([xp.broadcast_to(c, (*shape, c.shape[-1])) for c in pieces], axis=-1)


@mirror(SHORT_CONVOLUTION, WITH_HALVES)
def short_convolution(u, k):
    """Halves are computed in single precision."""
    return _direct(u, k)


@mirror(SHORT_CONVOLUTION, WITH_HALVES)
def short_convolution_vjp(dy, u, k):
    return unbroadcast_each(_direct_back(dy, u, k)[:2], (u, k))


def _lags(u, k, resets):
    """For each tap its number, and where the input so many steps before is of the same sequence."""
    same = namespace(u).ones_like(resets)
    for j in range(min(k.shape[-1], u.shape[-1])):
        yield j, same
        same = same[..., 1:] & ~resets[..., 1 : u.shape[-1] - j]


@mirror(SHORT_CONVOLUTION_PACKED)
def short_convolution_packed(u, k, resets):
    """One pass over the signal for each tap."""
    return _packed(u, k, resets)


def _packed(u, k, resets):
    xp, l = namespace(u), u.shape[-1]
    shape = np.broadcast_shapes(u.shape[:-1], k.shape[:-1], resets.shape[:-1])
    y = xp.zeros((*shape, l), dtype=common(u, k))
    for j, same in _lags(u, k, resets):
        y[..., j:] += xp.where(same, k[..., j, None] * u[..., : l - j], 0)
    return y


@mirror(SHORT_CONVOLUTION_PACKED)
def short_convolution_packed_vjp(dy, u, k, resets):
    """Two passes for each tap."""
    return *_packed_back(dy, u, k, resets), None


def _packed_back(dy, u, k, resets):
    xp, l, kind = namespace(u), u.shape[-1], common(dy, u, k)
    du = xp.zeros(dy.shape, dtype=kind)
    dk = xp.zeros((*dy.shape[:-1], k.shape[-1]), dtype=kind)
    for j, same in _lags(u, k, resets):
        late = xp.where(same, dy[..., j:], 0)
        du[..., : l - j] += k[..., j, None].conj() * late
        dk[..., j] = xp.where(same, u[..., : l - j].conj() * dy[..., j:], 0).sum(-1)
    return unbroadcast_each((du, dk), (u, k))


@mirror(SHORT_CONVOLUTION_STATEFUL, WITH_HALVES)
def short_convolution_stateful(u, k, s0):
    return _direct(u, k, s0), _newest(u, k, s0)


@mirror(SHORT_CONVOLUTION_STATEFUL, WITH_HALVES)
def short_convolution_stateful_vjp(dy, ds, u, k, s0):
    return unbroadcast_each(_direct_back(dy, u, k, s0, ds), (u, k, s0))


@mirror(SHORT_CONVOLUTION_STEP, WITH_HALVES)
def short_convolution_step(u, k, s):
    """A convolution of length 1."""
    u = u[..., None]
    return _direct(u, k, s)[..., 0], _newest(u, k, s)


@mirror(SHORT_CONVOLUTION_STEP, WITH_HALVES)
def short_convolution_step_vjp(dy, ds_next, u, k, s):
    du, dk, ds = _direct_back(dy[..., None], u[..., None], k, s, ds_next)
    return unbroadcast_each((du[..., 0], dk, ds), (u, k, s))


@mirror(CAUSAL_CONVOLUTION_DIRECT, WITH_HALVES)
def causal_convolution_direct(u, k):
    """L² / 2 products a row."""
    return _direct(u, k)


@mirror(CAUSAL_CONVOLUTION_DIRECT, WITH_HALVES)
def causal_convolution_direct_vjp(dy, u, k):
    return unbroadcast_each(_direct_back(dy, u, k)[:2], (u, k))


# With a bias and SiLU: the same launches, and array code after or before them


def _back(dy, sums, bias):
    """The cotangent of the sums, and the gradient of the bias."""
    g = dy * silu_slope(sums + bias[..., None])
    return g, unbroadcast(namespace(g).sum(g, axis=-1), bias)


@mirror(CAUSAL_CONV1D)
def causal_conv1d(u, k, bias):
    return silu(_direct(u, k) + bias[..., None])


@mirror(CAUSAL_CONV1D)
def causal_conv1d_vjp(dy, u, k, bias):
    g, dbias = _back(dy, _direct(u, k), bias)
    return *_of_whole(g, u, k), dbias


def _of_whole(g, u, k, s0=None, ds=None):
    """Gradients of u, k and the state if there is one; the bias may have axes that these lack."""
    given = (u, k) if s0 is None else (u, k, s0)
    found = _direct_back(g, along(u, g.shape[:-1], 1), k, s0, ds)[: len(given)]
    return unbroadcast_each(found, given)


@mirror(CAUSAL_CONV1D_PACKED)
def causal_conv1d_packed(u, k, bias, resets):
    return silu(_packed(u, k, resets) + bias[..., None])


@mirror(CAUSAL_CONV1D_PACKED)
def causal_conv1d_packed_vjp(dy, u, k, bias, resets):
    g, dbias = _back(dy, _packed(u, k, resets), bias)
    return *_packed_back(g, u, k, resets), dbias, None


@mirror(CAUSAL_CONV1D_STATEFUL)
def causal_conv1d_stateful(u, k, bias, s0):
    y = silu(_direct(u, k, s0) + bias[..., None])
    return y, along(_newest(u, k, s0), y.shape[:-1], 1)


@mirror(CAUSAL_CONV1D_STATEFUL)
def causal_conv1d_stateful_vjp(dy, ds, u, k, bias, s0):
    g, dbias = _back(dy, _direct(u, k, s0), bias)
    du, dk, ds0 = _of_whole(g, u, k, s0, ds)
    return du, dk, dbias, ds0


@mirror(CAUSAL_CONV1D_STEP)
def causal_conv1d_step(u, k, bias, s):
    """A convolution of length 1."""
    u = u[..., None]
    y = silu(_direct(u, k, s)[..., 0] + bias)
    return y, along(_newest(u, k, s), y.shape, 1)


@mirror(CAUSAL_CONV1D_STEP)
def causal_conv1d_step_vjp(dy, ds_next, u, k, bias, s):
    u = u[..., None]
    g, dbias = _back(dy[..., None], _direct(u, k, s), bias)
    du, dk, ds = _of_whole(g, u, k, s, ds_next)
    return du[..., 0], dk, dbias, ds
