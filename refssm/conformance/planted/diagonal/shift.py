"""Planted bugs in the kernel of the shift."""

import numpy as np

from refssm.conformance.planted.diagonal.every_kernel import late, planted
from refssm.conformance.planted.planting import of_result
from refssm.diagonal import SHIFT_KERNEL

SHIFT = planted(SHIFT_KERNEL, beyond=4)  # a shift is as long as n


def _padded(k, l):
    return np.concatenate([k[..., :l], 0 * np.repeat(k[..., :1], max(0, l - k.shape[-1]), -1)], -1)


def _by_transform(size):
    """The inverse transform of B̂* Ĉ over size(n) points."""

    def kernel(right, B, C, *, l):
        points = size(B.shape[-1])
        y = np.fft.ifft(np.fft.fft(C, points) * np.fft.fft(B.conj(), points).conj())
        y = y if np.iscomplexobj(B) or np.iscomplexobj(C) else y.real
        return _padded(y.astype(np.result_type(B, C)), l)

    return kernel


SHIFT.plant(
    ("transform", "by FFT: zeros and small entries become rounding errors",
     _by_transform(lambda n: 2 * n)),
    ("circular", "the shift wraps around", _by_transform(lambda n: n)),
    ("periodic", "the kernel repeated beyond n", lambda right, B, C, *, l:
     right(B, C, l=l)[..., np.arange(l) % max(1, B.shape[-1])]),
    ("exchanged", "Σ C_i B_{i+k}", lambda right, B, C, *, l: right(C, B, l=l)),
    ("convolved", "Σ B_i C_{k−i}", lambda right, B, C, *, l:
     right(B[..., ::-1], C[..., ::-1], l=l)[..., ::-1].copy()),
    ("flipped", "B read from its end", {"B": lambda B: B[..., ::-1]}),
    ("one_late", "K_{k+1} for K_k", lambda right, B, C, *, l: right(B, C, l=l + 1)[..., 1:].copy()),
    ("one_early", "K_{k−1} for K_k", of_result(late)),
    ("first_only", "B = e_0, as H3 starts", {"B": lambda B: (np.arange(B.shape[-1]) == 0) * B}),
    ("end_dropped", "the last place never read",
     {"C": lambda C: C * (np.arange(C.shape[-1]) < C.shape[-1] - 1)}),
    ("at_least_n", "only min(l, n) steps, then the last one on", lambda right, B, C, *, l:
     right(B, C, l=l)[..., np.minimum(np.arange(l), B.shape[-1] - 1)]),
)  # fmt: skip
SHIFT.plant(
    ("input_conjugated", "numpy.correlate's B*", {"B": np.conj}),
    ("output_conjugated", "C* for C", {"C": np.conj}),
    by="value[complex64]",
)
SHIFT.plant(
    ("nan_spread", "0·NaN of places that are out of reach", lambda right, B, C, *, l:
     right(B, C, l=l) + 0 * (B.sum(-1) + C.sum(-1))[..., None]),
    ("infinity_forgotten", "infinity beside finite numbers",
     {"C": lambda C: np.where(np.isinf(C), 1, C).astype(C.dtype)}),
    by="nan",
)  # fmt: skip


def _folded(right, dk, B, C, *, l):
    n = max(1, B.shape[-1])
    folded = sum((_padded(dk[..., i : i + n], n) for i in range(0, l, n)), 0 * dk[..., :1])
    return right(folded, B, C, l=n) if l > n else right(2 * dk, B, C, l=l)


SHIFT.plant(
    ("dB_halved", "dB by ½", {"B": lambda g: g / 2}),
    ("dC_negated", "dC with the other sign", {"C": np.negative}),
    ("dC_reversed", "dC backwards", {"C": lambda g: g[..., ::-1].copy()}),
    ("exchanged", "dB of the exchanged correlation",
     lambda right, dk, B, C, *, l: right(dk, C, B, l=l)[::-1]),
    ("beyond_n", "the cotangent beyond n wraps around", _folded),
    by="gradient",
)  # fmt: skip
