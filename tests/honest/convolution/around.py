"""Honest circular and bidirectional convolutions: sums, longer transforms, ends folded back."""

import numpy as np

from honest import Honest
from refssm.convolution import (
    BIDIRECTIONAL_CONVOLUTION,
    BIDIRECTIONAL_CONVOLUTION_SHIFTED,
    CAUSAL_CONVOLUTION_DIRECT,
    CIRCULAR_CONVOLUTION,
)


def _like(y, *arrays):
    """y in the type of the arguments; real if they are real."""
    common = np.result_type(*arrays)
    return (y if common.kind == "c" else y.real).astype(common)


def complex_transform(u, k):
    """A complex transform, for real signals too."""
    if u.shape[-1] == 0:
        return CIRCULAR_CONVOLUTION.reference(u, k)
    common = np.result_type(u, k, np.complex64)
    spectrum = np.fft.fft(u.astype(common)) * np.fft.fft(k.astype(common))
    return _like(np.fft.ifft(spectrum), u, k)


def folded(u, k):
    """The full convolution of length 2l − 1, with its end added to its beginning."""
    l = u.shape[-1]
    pad = [(0, 0)] * (u.ndim - 1) + [(0, l)]
    wide = CAUSAL_CONVOLUTION_DIRECT.reference(np.pad(u, pad), _padded(k))
    return wide[..., :l] + wide[..., l:]


def lag_by_lag(u, k):
    """One rolled copy of the signal after another."""
    u, k = np.broadcast_arrays(u, k)
    y = np.zeros(u.shape, np.result_type(u, k))
    for j in range(u.shape[-1]):
        y += k[..., j, None] * np.roll(u, j, axis=-1)
    return y


def _padded(k):
    return np.concatenate([k, np.zeros_like(k)], axis=-1)


def _around(k, kr, shift, taps):
    """Both kernels on a circle of 2l points: past lags from 0 on, future lags before it."""
    k, kr = np.broadcast_arrays(k, kr)
    l = k.shape[-1]
    circle = _padded(k).astype(np.result_type(k, kr))
    for j in range(l - taps):
        circle[..., (-j - shift) % (2 * l)] += kr[..., j]
    return circle


def _one_transform(shift, taps=None):
    """A transform of both kernels; `taps` of `kr` at its end are left out, by default `shift`."""

    def convolution(u, k, kr):
        l = u.shape[-1]
        circle = _around(k, kr, shift, shift if taps is None else taps)
        return _like(complex_transform(_padded(u), circle)[..., :l], u, k, kr)

    return convolution


def _by_sums(shift):
    def convolution(u, k, kr):
        past, back = CAUSAL_CONVOLUTION_DIRECT.reference, u[..., ::-1]
        future = past(back, kr)[..., ::-1]
        y = past(u, k) + (future if not shift else np.roll(future, -1, axis=-1))
        if shift and u.shape[-1]:
            y[..., -1] = past(u, k)[..., -1]
        return y

    return convolution


BOTH_WAYS = {BIDIRECTIONAL_CONVOLUTION: 0, BIDIRECTIONAL_CONVOLUTION_SHIFTED: 1}
AROUND = (complex_transform, folded, lag_by_lag)
IMPLEMENTATIONS = [
    *(Honest(op.name, "one_transform", _one_transform(s)) for op, s in BOTH_WAYS.items()),
    # as S4's FFTConv: the last tap of `kr` has no effect, but its size is in every rounding
    Honest(BIDIRECTIONAL_CONVOLUTION_SHIFTED.name, "with_the_last_tap", _one_transform(1, 0)),
    *(Honest(op.name, "by_sums", _by_sums(s)) for op, s in BOTH_WAYS.items()),
    *(Honest(CIRCULAR_CONVOLUTION.name, form.__name__, form) for form in AROUND),
]
