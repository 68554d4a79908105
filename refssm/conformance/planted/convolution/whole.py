"""Planted bugs of convolutions along a whole sequence: transforms, wrong indices, both ways."""

import numpy as np
from numpy.fft import fft, ifft

from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.planted.arithmetic import tf32
from refssm.conformance.planted.planting import (
    Planting,
    in_arithmetic,
    instead,
    of_each_result,
    of_result,
)
from refssm.convolution import (
    BIDIRECTIONAL_CONVOLUTION,
    BIDIRECTIONAL_CONVOLUTION_SHIFTED,
    CAUSAL_CONVOLUTION,
    CAUSAL_CONVOLUTION_DIRECT,
    CIRCULAR_CONVOLUTION,
)


def back(u):
    """The signal in reversed time."""
    return u[..., ::-1]


def later(u):
    """The signal one step later, with a zero at the start."""
    return np.concatenate([0 * u[..., :1], u[..., :-1]], axis=-1)


def earlier(u):
    """The signal one step earlier, with a zero at the end."""
    return np.concatenate([u[..., 1:], 0 * u[..., :1]], axis=-1)


def rolled(u):
    """The signal one step later, with its last sample at the start."""
    return np.roll(u, 1, axis=-1)


def kept(k, taps):
    """The kernel with only its first taps."""
    return np.where(np.arange(k.shape[-1]) < taps, k, 0).astype(k.dtype)


def first_64(k):
    """The kernel with only its first 64 taps."""
    return kept(k, 64)


def but_last(k):
    """The kernel with its last entry zero."""
    return kept(k, k.shape[-1] - 1)


def not_conjugated(right, *args):
    """The gradients with the arguments instead of their conjugates."""
    cotangents = (len(args) - 1) // 2  # 1 of 3 or 4, 2 of 5
    return right(*args[:cotangents], *(a.conj() for a in args[cotangents:]))


def weights_of_first(right, dy, *args):
    """dk from the cotangent of the first sequence only, if there are several."""
    du, dk, *ds = right(dy, *args)
    if max(g.ndim for g in (du, *ds) if g is not None) > dk.ndim:
        dk = right(np.concatenate([dy[:1], 0 * dy[1:]]), *args)[1]
    return du, dk, *ds


AS_JAX = ("as_jax", "the conjugate convention", of_each_result(np.conj))


def by_transform(u, k, n, filtered=lambda U: U):
    """A product of n-point transforms, cut to length l."""
    common = np.result_type(u, k)
    y = ifft(filtered(fft(u.astype(common), n) * fft(k.astype(common), n)))[..., : u.shape[-1]]
    y = np.concatenate([y, np.zeros((*y.shape[:-1], u.shape[-1] - y.shape[-1]))], axis=-1)
    return (y if np.dtype(common).kind == "c" else y.real).astype(common)


def _of_points(points):
    """A convolution by transforms of points(l) points."""
    return lambda right, u, k: by_transform(u, k, max(1, points(u.shape[-1])))


def _spectrum(filtered):
    """A convolution by transforms of 2l points, with a change to the spectrum."""
    return lambda right, u, k: by_transform(u, k, 2 * u.shape[-1], filtered)


def _without(line):
    """A convolution by transforms whose spectrum lacks one of its n lines."""
    return _spectrum(lambda U: np.where(np.arange(U.shape[-1]) == line(U.shape[-1]), 0, U))


def _block_by_block(right, u, k):
    """Blocks of 64 samples, each with only the part of its response inside the block."""
    blocks = [u[..., i : i + 64] for i in range(0, u.shape[-1], 64)]
    return np.concatenate([right(block, k[..., : block.shape[-1]]) for block in blocks], axis=-1)


def _blurred(k):
    """The kernel without taps below 1e-6 of the largest, such as the late ones of a decay."""
    size = np.abs(k)
    return np.where(size < 1e-6 * size.max(-1, keepdims=True, initial=0), 0, k).astype(k.dtype)


def _circular_adjoint(right, dy, u, k):
    du = back(by_transform(back(dy), k.conj(), u.shape[-1]))
    return du if np.iscomplexobj(u) else du.real, right(dy, u, k)[1]


def _short_adjoint(right, dy, u, k):
    """Gradients by transforms of 2l − 2 points."""
    n = max(1, 2 * u.shape[-1] - 2)
    du, dk = (back(by_transform(back(dy), x.conj(), n)) for x in (k, u))
    return unbroadcast(du, u), unbroadcast(dk, k)


def _toeplitz(u, k):
    """Zeros above the diagonal are multiplied too, and 0·NaN is NaN."""
    lag = np.arange(u.shape[-1])[:, None] - np.arange(u.shape[-1])
    return (np.where(lag >= 0, k[..., np.maximum(lag, 0)], 0) * u[..., None, :]).sum(-1)


DIRECT = Planting(CAUSAL_CONVOLUTION_DIRECT, "float32")
TRANSFORM = Planting(CAUSAL_CONVOLUTION, "float32")
for _p in (DIRECT, TRANSFORM):
    _p.usual()
    _p.plant(
        # transforms of a wrong length, or with a line missing
        ("circular", "no zero padding: the end wraps around onto the beginning",
         _of_points(lambda l: l)),
        ("short_padding", "padding to 1.5 l: only a late impulse and a flat kernel wrap around",
         _of_points(lambda l: l * 3 // 2)),
        ("padding_one_short", "padding to 2l − 2 points: the last product wraps onto y_0",
         _of_points(lambda l: 2 * l - 2)),
        ("padded_to_128", "transforms of at most 512 points",
         _of_points(lambda l: min(512, 2 * l))),
        ("nyquist_dropped", "the Nyquist line dropped", _without(lambda n: n // 2)),
        ("mean_dropped", "the line of frequency 0 dropped", _without(lambda n: 0)),
        ("top_line_dropped", "one line below the Nyquist frequency dropped",
         _without(lambda n: n // 2 - 1)),
        ("orthonormal", "orthonormal transforms multiplied",
         of_result(lambda y: y / np.sqrt(y.dtype.type(2 * y.shape[-1])).real)),
        ("spectrum_in_tf32", "the spectrum in TF32", _spectrum(tf32)),
        # sums over wrong indices
        ("correlation", "Σ k_j u_{i+j}", lambda right, u, k: back(right(back(u), k)).copy()),
        ("kernel_reversed", "k backwards", {"k": back}),
        ("signal_reversed", "u backwards", {"u": back}),
        ("one_step_late", "the sum over j < i", {"k": later}),
        ("one_step_early", "k_{i−j+1}: the first tap lost", {"k": earlier}),
        ("rolled", "the result rolled by one", of_result(rolled)),
        ("elementwise", "u_i k_i", instead(np.multiply)),
        ("skip_added", "u added", lambda right, u, k: right(u, k) + u),
        ("first_tap_halved", "the first tap halved, as by the trapezoidal rule",
         {"k": lambda k: k * np.where(np.arange(k.shape[-1]) == 0, 0.5, 1).astype(k.dtype)}),
        ("taps_64", "taps beyond 64 dropped: only a long kernel shows it", {"k": first_64}),
        ("taps_128", "taps beyond 128 dropped",
         {"k": lambda k: kept(k, 128)}),
        ("taps_256", "taps beyond 256 dropped: only a flat kernel shows it",
         {"k": lambda k: kept(k, 256)}),
        ("last_tap", "the last tap dropped: only an early impulse shows it", {"k": but_last}),
        ("last_sample", "the last sample dropped: only a late impulse shows it", {"u": but_last}),
        ("last_block", "samples beyond a multiple of 64 dropped",
         {"u": lambda u: kept(u, u.shape[-1] // 64 * 64) if u.shape[-1] > 64 else u}),
        ("blocks_apart", "blocks of 64 convolved apart: no overlap is added", _block_by_block),
        ("channels_mixed", "the next channel's kernel",
         {"k": lambda k: np.roll(k, 1, axis=0) if k.ndim > 1 else back(k)}),
    )  # fmt: skip
    _p.plant(
        ("imaginary_dropped", "the real transform of complex arguments",
         lambda right, u, k: right(u.real, k.real).astype(np.result_type(u, k))),
        ("conjugate_kernel", "k* for k", {"k": np.conj}),
        ("conjugate_signal", "u* for u", {"u": np.conj}),
        by="value[complex64]",
    )  # fmt: skip
    _p.plant(
        ("forwards", "du and dk run forwards in time",
         lambda right, dy, u, k: tuple(map(back, right(back(dy), u, k)))),
        ("circular", "the adjoint wraps around", _circular_adjoint),
        ("padding_one_short", "transforms of 2l − 2 points: the last product wraps around",
         _short_adjoint),
        ("strictly_causal", "the adjoint of the sum over j < i",
         lambda right, dy, u, k: right(dy, u, later(k))),  # of which dk does not depend
        ("first_of_batch", "dk of the first sequence only, though k is shared by all",
         weights_of_first),
        ("mean_of_batch", "dk averaged over the batch in place of summed",
         of_result(lambda du, dk: (du, dk / dk.dtype.type(du.size // dk.size)))),
        ("last_step_dropped", "the last cotangent left out", {"dy": but_last}),
        ("taps_64", "dk beyond 64 taps left zero", {"k": first_64}),
        ("tf32", "TF32 arithmetic", in_arithmetic(tf32)),
        by="gradient",
    )  # fmt: skip
    _p.plant(("not_conjugated", "k and u for k* and u*", not_conjugated), AS_JAX,
             by="gradient[complex64]")  # fmt: skip

DIRECT.plant(
    ("by_transform", "an FFT where every entry is to have its digits",
     instead(CAUSAL_CONVOLUTION.reference)),
    ("late_taps_flushed", "tiny late taps set to zero", {"k": _blurred}),
)  # fmt: skip
DIRECT.plant(("toeplitz_product", "a product with a Toeplitz matrix: NaN runs backwards",
              instead(_toeplitz)), by="nan")  # fmt: skip


past, circular = CAUSAL_CONVOLUTION.reference, CIRCULAR_CONVOLUTION.reference
NOT_CONJUGATED = ("not_conjugated", "k for k*", not_conjugated)


def _turned(k):
    """k_{−i} on a circle."""
    return rolled(back(k))


def _last_of_odd_lost(y):
    l = y.shape[-1]
    return np.where((np.arange(l) == l - 1) & (l % 2 == 1), 0, y)


CIRCULAR = Planting(CIRCULAR_CONVOLUTION, "float32")
CIRCULAR.usual()
CIRCULAR.plant(
    ("causal", "padded, so nothing wraps around", instead(past)),
    ("correlation", "k_{j−i} for k_{i−j}", {"k": _turned}),
    ("reversed", "the kernel backwards", {"k": back}),
    ("delayed", "the kernel one step late", {"k": rolled}),
    ("signal_delayed", "the signal one step early", {"u": lambda u: np.roll(u, -1, axis=-1)}),
    ("last_tap", "the last tap forgotten", {"k": but_last}),
    ("beyond_64", "taps beyond 64 forgotten", {"k": first_64}),
    ("orthonormal", "orthonormal transforms: 1/√l too small",
     of_result(lambda y: y / np.sqrt(max(1, y.shape[-1])).astype(y.real.dtype))),
    ("even_only", "the last sample of an odd length lost", of_result(_last_of_odd_lost)),
    ("wrapped_halfway", "wraps around at l − 1",
     lambda right, u, k: right(u, k) - past(u, k) + past(u, later(k))),
)  # fmt: skip
CIRCULAR.plant(
    ("conjugate", "k* for k", {"k": np.conj}),
    ("real_part", "Re k for k", {"k": lambda k: k.real.astype(k.dtype)}),
    by="value[complex64]",
)
CIRCULAR.plant(
    ("not_reversed", "a convolution for a correlation",
     lambda right, dy, u, k: right(dy, _turned(u), _turned(k))),
    ("swapped", "dk before du",
     of_result(lambda du, dk: (np.broadcast_to(dk, du.shape).copy(), dk))),
    by="gradient",
)  # fmt: skip
CIRCULAR.plant(NOT_CONJUGATED, AS_JAX, by="gradient[complex64]")

BOTH = Planting(BIDIRECTIONAL_CONVOLUTION, "float32")
SHIFTED = Planting(BIDIRECTIONAL_CONVOLUTION_SHIFTED, "float32")
for _p, _other in (BOTH, SHIFTED.op), (SHIFTED, BOTH.op):
    _p.usual()
    _p.plant(
        ("lag", "the other convention of lag 0", instead(_other.reference)),
        ("forward_only", "the future forgotten", {"kr": np.zeros_like}),
        ("backward_only", "the past forgotten", {"k": np.zeros_like}),
        ("kernels_exchanged", "k and k' exchanged", lambda right, u, k, kr: right(u, kr, k)),
        ("not_reversed", "k' runs forwards", lambda right, u, k, kr: right(u, k + kr, 0 * kr)),
        ("kernel_reversed", "k' reversed over its whole length", {"kr": back}),
        ("two_early", "the future one step earlier", {"kr": earlier}),
        ("one_late", "the future one step later", {"kr": later}),
        ("circular", "no padding: both kernels wrap around",
         lambda right, u, k, kr: circular(u, k) + right(u, 0 * k, kr)),
        ("future_circular", "no padding of the future",
         lambda right, u, k, kr: past(u, k) + back(circular(back(u), kr))),
        ("beyond_64", "taps of k' beyond 64 forgotten", {"kr": first_64}),
        ("averaged", "the mean of both directions", of_result(lambda y: y / 2)),
    )  # fmt: skip
    _p.plant(("conjugate", "k'* for k'", {"kr": np.conj}), by="value[complex64]")
    _p.plant(
        ("future_ignored", "du without what came from the past",
         lambda right, dy, u, k, kr: right(dy, u, k, 0 * kr)),  # only du depends on it
        ("kernels_exchanged", "dk and dk' exchanged", of_result(lambda du, dk, dkr: (du, dkr, dk))),
        ("lag", "the other convention of lag 0", instead(_other.bare_vjp)),
        by="gradient",
    )  # fmt: skip
    _p.plant(NOT_CONJUGATED, AS_JAX, by="gradient[complex64]")


PLANTINGS = (DIRECT, TRANSFORM, CIRCULAR, BOTH, SHIFTED)
