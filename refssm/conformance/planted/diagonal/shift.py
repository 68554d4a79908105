"""Planted bugs in the kernel of the shift."""

import numpy as np

from refssm.conformance.planted.diagonal.base import plant_gradients, plant_sums
from refssm.conformance.planted.planting_old import Planting
from refssm.diagonal import SHIFT_KERNEL

SHIFT = Planting(SHIFT_KERNEL, "float32")
SHIFT.usual()
plant_sums(SHIFT, (0, 1))
plant_gradients(SHIFT)
right, right_vjp = SHIFT.right, SHIFT.right_vjp
both = SHIFT.forward


def _padded(k, l):
    return np.concatenate([k[..., :l], 0 * np.repeat(k[..., :1], max(0, l - k.shape[-1]), -1)], -1)


def _transform(B, C, size):
    """The inverse transform of B̂* Ĉ over `size` points."""
    f = np.fft.fft(C, size) * np.fft.fft(B.conj(), size).conj()
    y = np.fft.ifft(f)
    return (y if np.iscomplexobj(B) or np.iscomplexobj(C) else y.real).astype(np.result_type(B, C))


both("transform", "by FFT: zeros and small entries become rounding errors")(
    lambda B, C, *, l: _padded(_transform(B, C, 2 * B.shape[-1]), l)
)
both("circular", "the shift wraps around")(
    lambda B, C, *, l: _padded(_transform(B, C, B.shape[-1]), l)
)
both("periodic", "the kernel repeated beyond n")(
    lambda B, C, *, l: right(B, C, l=l)[..., np.arange(l) % max(1, B.shape[-1])]
)
both("exchanged", "Σ C_i B_{i+k}")(lambda B, C, *, l: right(C, B, l=l))
both("convolved", "Σ B_i C_{k−i}")(
    lambda B, C, *, l: right(B[..., ::-1], C[..., ::-1], l=l)[..., ::-1].copy()
)
both("flipped", "B read from its end")(lambda B, C, *, l: right(B[..., ::-1], C, l=l))
both("input_conjugated", "numpy.correlate's B*", dtype="complex64")(
    lambda B, C, *, l: right(B.conj(), C, l=l)
)
both("output_conjugated", "C* for C", dtype="complex64")(lambda B, C, *, l: right(B, C.conj(), l=l))
both("one_late", "K_{k+1} for K_k")(lambda B, C, *, l: right(B, C, l=l + 1)[..., 1:].copy())
both("one_early", "K_{k−1} for K_k")(
    lambda B, C, *, l: (
        np.concatenate([0 * B[..., :1], right(B, C, l=l)], -1)[..., :l].copy()
        if B.shape[:-1] == np.broadcast_shapes(B.shape[:-1], C.shape[:-1])
        else right(B, C, l=l) + 1
    )
)
both("first_only", "B = e_0, as H3 starts")(
    lambda B, C, *, l: right((np.arange(B.shape[-1]) == 0) * B, C, l=l)
)
both("end_dropped", "the last place never read")(
    lambda B, C, *, l: right(B, C * (np.arange(C.shape[-1]) < C.shape[-1] - 1), l=l)
)
both("at_least_n", "only min(l, n) steps, then the last one on")(
    lambda B, C, *, l: _held_on(right(B, C, l=l), B.shape[-1])
)
both("nan_spread", "0·NaN of places that are out of reach", "nan")(
    lambda B, C, *, l: right(B, C, l=l) + 0 * (B.sum(-1) + C.sum(-1))[..., None]
)
both("infinity_forgotten", "infinity beside finite numbers", "nan")(
    lambda B, C, *, l: right(B, np.where(np.isinf(C), 1, C).astype(C.dtype), l=l)
)


def _held_on(k, n):
    k[..., n:] = k[..., n - 1 : n]
    return k


SHIFT.changed_gradient("dB_halved", "dB by ½", B=lambda g, _: g / 2)
SHIFT.changed_gradient("dC_negated", "dC with the other sign", C=lambda g, _: -g)
SHIFT.changed_gradient("dC_reversed", "dC backwards", C=lambda g, _: g[..., ::-1].copy())


@SHIFT.gradient("exchanged", "dB of the exchanged correlation")
def _(dk, B, C, *, l):
    dC, dB = right_vjp(dk, C, B, l=l)
    return (dB, dC) if dB.dtype == B.dtype and dC.dtype == C.dtype else right_vjp(2 * dk, B, C, l=l)


@SHIFT.gradient("beyond_n", "the cotangent beyond n wraps around")
def _(dk, B, C, *, l):
    n = max(1, B.shape[-1])
    folded = sum((_padded(dk[..., i : i + n], n) for i in range(0, l, n)), 0 * dk[..., :1])
    return right_vjp(folded, B, C, l=n) if l > n else right_vjp(2 * dk, B, C, l=l)


DEVIATIONS = SHIFT.bugs
