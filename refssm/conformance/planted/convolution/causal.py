"""Planted bugs in causal convolutions and their gradients, in both forms."""

import numpy as np
from numpy.fft import fft, ifft

from refssm.conformance.planted.arithmetic import tf32
from refssm.conformance.planted.convolution.around import DEVIATIONS as AROUND
from refssm.conformance.planted.convolution.short import DEVIATIONS as SHORT
from refssm.conformance.planted.planting_old import Planting
from refssm.convolution import CAUSAL_CONVOLUTION, CAUSAL_CONVOLUTION_DIRECT


def by_transform(u, k, n, filtered=lambda U: U):
    """A product of n-point transforms, cut to length l."""
    common = np.result_type(u, k)
    y = ifft(filtered(fft(u.astype(common), n) * fft(k.astype(common), n)))[..., : u.shape[-1]]
    y = np.concatenate([y, np.zeros((*y.shape[:-1], u.shape[-1] - y.shape[-1]))], axis=-1)
    return (y if np.dtype(common).kind == "c" else y.real).astype(common)


def _without(bin_):
    """A spectrum without one of its lines."""

    def filtered(U):
        U[..., bin_(U.shape[-1])] = 0
        return U

    return filtered


def block_by_block(u, k, right):
    """Blocks of 64 samples, each with the part of its response that lies in it."""
    l = u.shape[-1]
    cuts = [slice(i, min(i + 64, l)) for i in range(0, l, 64)]
    return np.concatenate([right(u[..., c], k[..., : c.stop - c.start]) for c in cuts], axis=-1)


def kept(k, taps):
    """Only the first taps of a kernel."""
    return np.where(np.arange(k.shape[-1]) < taps, k, 0).astype(k.dtype)


def blurred(k):
    """Taps below 1e-6 of the largest set to zero: the tiny late ones of a decaying kernel."""
    size = np.abs(k)
    return np.where(size < 1e-6 * size.max(-1, keepdims=True, initial=0), 0, k).astype(k.dtype)


def delayed(k):
    """One zero in front."""
    return np.concatenate([0 * k[..., :1], k[..., :-1]], axis=-1)


def _plant_transforms(p: Planting) -> None:
    """Transforms of a wrong length, or with a line missing."""
    wrong = p.forward
    wrong("circular", "no zero padding: the end wraps around onto the beginning")(
        lambda u, k: by_transform(u, k, u.shape[-1])
    )
    wrong("short_padding", "padding to 1.5 l: only a late impulse and a flat kernel wrap around")(
        lambda u, k: by_transform(u, k, max(1, u.shape[-1] * 3 // 2))
    )
    wrong("padding_one_short", "padding to 2l − 2 points: the last product wraps onto y_0")(
        lambda u, k: by_transform(u, k, max(1, 2 * u.shape[-1] - 2))
    )
    wrong("padded_to_128", "transforms of at most 512 points")(
        lambda u, k: by_transform(u, k, max(1, min(512, 2 * u.shape[-1])))
    )
    wrong("nyquist_dropped", "the Nyquist line dropped")(
        lambda u, k: by_transform(u, k, 2 * u.shape[-1], _without(lambda n: n // 2))
    )
    wrong("mean_dropped", "the line of frequency 0 dropped")(
        lambda u, k: by_transform(u, k, 2 * u.shape[-1], _without(lambda n: 0))
    )
    wrong("top_line_dropped", "one line below the Nyquist frequency dropped")(
        lambda u, k: by_transform(u, k, 2 * u.shape[-1], _without(lambda n: n // 2 - 1))
    )
    wrong("orthonormal", "orthonormal transforms multiplied")(
        lambda u, k: p.right(u, k) / np.sqrt(u.dtype.type(2 * u.shape[-1])).real
    )
    wrong("spectrum_in_tf32", "the spectrum in TF32")(
        lambda u, k: by_transform(u, k, 2 * u.shape[-1], tf32)
    )
    wrong("imaginary_dropped", "the real transform of complex arguments", dtype="complex64")(
        lambda u, k: p.right(u.real, k.real).astype(np.result_type(u, k))
    )


def _plant_sums(p: Planting) -> None:
    """Sums over wrong indices."""
    right, wrong = p.right, p.forward
    wrong("correlation", "Σ k_j u_{i+j}")(lambda u, k: right(u[..., ::-1], k)[..., ::-1].copy())
    wrong("kernel_reversed", "k backwards")(lambda u, k: right(u, k[..., ::-1]))
    wrong("signal_reversed", "u backwards")(lambda u, k: right(u[..., ::-1], k))
    wrong("one_step_late", "the sum over j < i")(lambda u, k: right(u, delayed(k)))
    wrong("one_step_early", "k_{i−j+1}: the first tap lost")(
        lambda u, k: right(u, np.concatenate([k[..., 1:], 0 * k[..., :1]], axis=-1))
    )
    wrong("rolled", "the result rolled by one")(lambda u, k: np.roll(right(u, k), 1, axis=-1))
    wrong("conjugate_kernel", "k* for k", dtype="complex64")(lambda u, k: right(u, k.conj()))
    wrong("conjugate_signal", "u* for u", dtype="complex64")(lambda u, k: right(u.conj(), k))
    wrong("elementwise", "u_i k_i")(lambda u, k: u * k)
    wrong("skip_added", "u added")(lambda u, k: right(u, k) + u)
    wrong("first_tap_halved", "the first tap halved, as by the trapezoidal rule")(
        lambda u, k: right(u, k * np.where(np.arange(k.shape[-1]) == 0, 0.5, 1).astype(k.dtype))
    )
    wrong("taps_64", "taps beyond 64 dropped: only a long kernel shows it")(
        lambda u, k: right(u, kept(k, 64))
    )
    wrong("taps_256", "taps beyond 256 dropped: only a flat kernel shows it")(
        lambda u, k: right(u, kept(k, 256))
    )
    wrong("last_tap", "the last tap dropped: only an early impulse shows it")(
        lambda u, k: right(u, kept(k, k.shape[-1] - 1))
    )
    wrong("last_sample", "the last sample dropped: only a late impulse shows it")(
        lambda u, k: right(kept(u, u.shape[-1] - 1), k)
    )
    wrong("last_block", "samples beyond a multiple of 64 dropped")(
        lambda u, k: right(kept(u, u.shape[-1] // 64 * 64) if u.shape[-1] > 64 else u, k)
    )
    wrong("blocks_apart", "blocks of 64 convolved apart: no overlap is added")(
        lambda u, k: block_by_block(u, k, right)
    )
    wrong("channels_mixed", "the next channel's kernel")(
        lambda u, k: right(u, np.roll(k, 1, axis=0) if k.ndim > 1 else k[..., ::-1])
    )


def _plant_gradients(p: Planting) -> None:
    right, vjp = p.right, p.right_vjp

    @p.gradient("forwards", "du and dk run forwards in time")
    def _(dy, u, k):
        du, dk = vjp(dy[..., ::-1], u, k)
        return du[..., ::-1], dk[..., ::-1]

    @p.gradient("circular", "the adjoint wraps around")
    def _(dy, u, k):
        du = by_transform(dy[..., ::-1], k.conj(), u.shape[-1])[..., ::-1]
        _, dk = vjp(dy, u, k)
        return du if np.iscomplexobj(u) else du.real, dk

    @p.gradient("strictly_causal", "the adjoint of the sum over j < i")
    def _(dy, u, k):
        du, dk = vjp(dy, u, k)
        return vjp(dy, u, delayed(k))[0] + 0 * du, dk

    @p.gradient("first_of_batch", "dk of the first sequence only, though k is shared by all")
    def _(dy, u, k):
        du, dk = vjp(dy, u, k)
        return du, vjp(dy[:1], u[:1], k)[1] if u.ndim > k.ndim else dk

    @p.gradient("mean_of_batch", "dk averaged over the batch in place of summed")
    def _(dy, u, k):
        du, dk = vjp(dy, u, k)
        return du, dk / dk.dtype.type(u.size // k.size)

    @p.gradient("last_step_dropped", "the last cotangent left out")
    def _(dy, u, k):
        return vjp(kept(dy, dy.shape[-1] - 1), u, k)

    @p.gradient("not_conjugated", "k and u for k* and u*", "complex64")
    def _(dy, u, k):
        return vjp(dy, u.conj(), k.conj())

    @p.gradient("as_jax", "the conjugate convention", "complex64")
    def _(dy, u, k):
        return tuple(g.conj() for g in vjp(dy, u, k))

    @p.gradient("taps_64", "dk beyond 64 taps left zero")
    def _(dy, u, k):
        du, dk = vjp(dy, u, k)
        return du, kept(dk, 64)

    @p.gradient("tf32", "TF32 arithmetic")
    def _(dy, u, k):
        return tuple(tf32(g) for g in vjp(tf32(dy), tf32(u), tf32(k)))

    del right


DIRECT = Planting(CAUSAL_CONVOLUTION_DIRECT, "float32")
TRANSFORM = Planting(CAUSAL_CONVOLUTION, "float32")
for _p in (DIRECT, TRANSFORM):
    _p.usual()
    _plant_transforms(_p)
    _plant_sums(_p)
    _plant_gradients(_p)

DIRECT.forward("by_transform", "an FFT where every entry is to have its digits")(TRANSFORM.right)
DIRECT.forward("late_taps_flushed", "tiny late taps set to zero")(
    lambda u, k: DIRECT.right(u, blurred(k))
)
DIRECT.forward("toeplitz_product", "a product with a Toeplitz matrix: NaN runs backwards", "nan")(
    lambda u, k: _toeplitz(u, k)
)


def _toeplitz(u, k):
    """Zeros above the diagonal are multiplied too, and 0·NaN is NaN."""
    lag = np.arange(u.shape[-1])[:, None] - np.arange(u.shape[-1])
    return (np.where(lag >= 0, k[..., np.maximum(lag, 0)], 0) * u[..., None, :]).sum(-1)


DEVIATIONS = [*DIRECT.bugs, *TRANSFORM.bugs, *AROUND, *SHORT]
