"""Helpers of all kernels: steps, powers along time, and sums over modes and over time."""

import numpy as np


def times(x, l):
    """0 … l−1, in the precision of x."""
    return np.arange(l, dtype=np.finfo(x.dtype).dtype)


def exponentials(x, l):
    """E_nk = e^{x_n k}; time is the last axis, where NumPy sums pairwise."""
    return np.exp(x[..., :, None] * times(x, l))


def powers(a, l):
    """a_n^k, k = 0 … l−1, by doubling: the first entries are 1 for every a."""
    E, leap = np.ones((*a.shape, 1), a.dtype)[..., :l], a
    while E.shape[-1] < l:
        E = np.concatenate([E, leap[..., None] * E[..., : l - E.shape[-1]]], axis=-1)
        leap = leap * leap
    return E


def bilinear_powers(h, l):
    """E_nk = Ā_n^k, Ā = (1 + h)/(1 − h): from log Ā = 2 artanh h, or as powers if |Ā| < ½.

    A slow mode needs the logarithm, because a rounded Ā loses k·u; Ā = 0 has no logarithm. For real
    h < −1 the logarithm of −Ā is 2 artanh(1/h).
    """
    A_bar, k = (1 + h) / (1 - h), times(h, l)
    fast = ~(np.abs(A_bar) >= 0.5)  # True for NaN too
    h = np.where(fast, 0, h)
    beyond = (h < -1) if not np.iscomplexobj(h) else np.zeros(h.shape, bool)
    log = 2 * np.arctanh(np.where(beyond, 1 / np.where(beyond, h, 1), h))
    slow = np.exp(log[..., :, None] * k)
    slow = np.where(beyond[..., :, None] & (k % 2 == 1), -slow, slow)
    return np.where(fast[..., :, None], np.where(fast, A_bar, 0)[..., :, None] ** k, slow)


def total(v, E):
    """Σ_n v_n E_nk; copied so that modes are the last axis, where NumPy sums pairwise."""
    return np.swapaxes(v[..., :, None] * E, -1, -2).copy().sum(-1)


def against(dk, E):
    """Σ_k dk_k E_nk* for each mode."""
    return (dk[..., None, :] * E.conj()).sum(-1)


def moment_against(dk, v, E):
    """Σ_k k dk_k (v_n E_nk)*: the cotangent of x for Σ v e^{xk}.

    v is a factor inside the sum, as in autodiff: a product that underflows is then multiplied by k.
    """
    return (times(dk, dk.shape[-1]) * (dk[..., None, :] * (v[..., :, None] * E).conj())).sum(-1)


def slope_against(dk, v, E):
    """Σ_k k dk_k (v_n Ā_n^{k−1})*: the cotangent of Ā for Σ v Ā^k, also at Ā = 0."""
    later = dk[..., None, 1:]
    earlier = (v[..., :, None] * E[..., : later.shape[-1]]).conj()
    return ((times(dk, later.shape[-1]) + 1) * (later * earlier)).sum(-1)
