"""Honest shift kernels: lag by lag, by the state, by the matrix, by NumPy's correlation."""

import numpy as np
from scipy import linalg, signal

from refssm._numerics.broadcasting import unbroadcast_each


def _batched(B, C, l):
    """B and C broadcast over the batch, and zeros for the result."""
    batch = np.broadcast_shapes(B.shape[:-1], C.shape[:-1])
    wide = (np.broadcast_to(a, (*batch, a.shape[-1])) for a in (B, C))
    return *wide, np.zeros((*batch, l), np.result_type(B, C))


def lag_by_lag(B, C, *, l):
    """One sum for each k < n."""
    B, C, K = _batched(B, C, l)
    n = B.shape[-1]
    for k in range(min(n, l)):
        K[..., k] = (B[..., : n - k] * C[..., k:]).sum(-1)
    return K


def place_by_place(B, C, *, l):
    """The output of each place of the state, added from the last place to the first."""
    B, C, K = _batched(B, C, l)
    n = B.shape[-1]
    for i in range(n - 1, -1, -1):
        reach = min(n - i, l)
        K[..., :reach] += B[..., i, None] * C[..., i : i + reach]
    return K


def state(B, C, *, l):
    """The state moves by one place per step; what leaves it is dropped, NaN included."""
    B, C, K = _batched(B, C, l)
    x, n = B.copy(), B.shape[-1]
    for k in range(min(n, l)):
        K[..., k] = (C[..., k:] * x[..., k:]).sum(-1)
        x[..., k + 1 :] = x[..., k : n - 1].copy()
    return K


def _slices(function):
    def whole(B, C, *, l):
        B, C, K = _batched(B, C, l)
        for i in np.ndindex(*B.shape[:-1]):
            if B.shape[-1] and l:
                k = function(B[i], C[i])[:l]
                K[i][: k.size] = k
        return K

    return whole


def _correlate(B, C):
    """By numpy.correlate, which conjugates its second argument."""
    return np.correlate(C, B.conj(), "full")[B.size - 1 :]


def _direct(B, C):
    return signal.correlate(C, B.conj(), "full", method="direct")[B.size - 1 :]


def _hankel(B, C):
    """The upper triangle C_{i+k} times B; zeros outside are left out, not multiplied."""
    H = linalg.hankel(C)
    i, k = np.indices(H.shape)
    return np.where(i + k < B.size, H * B, 0).sum(-1)


def by_transform(B, C, *, l):
    """By FFT, as its paper does: the spectrum of B conjugated, 2n points."""
    n = max(1, B.shape[-1])
    K = _spectral(np.fft.fft(C, 2 * n) * np.fft.fft(B.conj(), 2 * n).conj(), min(n, l))
    kind = np.result_type(B, C)
    K = (K if kind.kind == "c" else K.real).astype(kind)
    return np.concatenate([K, np.zeros((*K.shape[:-1], l - K.shape[-1]), kind)], axis=-1)


def by_transform_vjp(dk, B, C, *, l):
    """dB_i = Σ_k dk_k C*_{i+k} and dC_i = Σ_k dk_k B*_{i−k}, by FFT."""
    n = B.shape[-1]
    points = 2 * max(1, n)
    dk = np.fft.fft(dk[..., :n], points)
    dB = _spectral(dk.conj() * np.fft.fft(C, points), n).conj()
    dC = _spectral(dk * np.fft.fft(B.conj(), points), n)
    return unbroadcast_each((dB, dC), (B, C))


def _spectral(spectrum, count):
    """The first entries of the inverse transform."""
    return np.fft.ifft(spectrum)[..., :count]


SHIFT = {
    "lag_by_lag": lag_by_lag,
    "place_by_place": place_by_place,
    "state": state,
    "numpy_correlate": _slices(_correlate),
    "scipy_correlate": _slices(_direct),
    "hankel": _slices(_hankel),
}
