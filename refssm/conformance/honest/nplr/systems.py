"""The systems to decompose, by operator: A, p with A + p pᵀ normal, and b; from refssm.hippo."""

import numpy as np

from refssm.hippo import HIPPO_FOURIER, HIPPO_FOURIER_NAIVE, HIPPO_LAGT, HIPPO_LEGS, HIPPO_LEGT
from refssm.nplr import NPLR_FOURIER, NPLR_FOURIER_NAIVE, NPLR_LAGT, NPLR_LEGS, NPLR_LEGT


def legs(*, n):
    """p_i = √(i+½)."""
    return _with(HIPPO_LEGS, lambda b: b[:, None] / np.sqrt(2), n=n)


def legt(*, n, window=1.0):
    """The odd and the even half of √(2i+1)/√w."""
    odd = np.arange(n) % 2 == 1
    halves = np.stack([odd, ~odd], axis=1)
    return _with(HIPPO_LEGT, lambda b: b[:, None] * halves * np.sqrt(window), n=n, window=window)


def lagt(*, n, beta=1.0):
    """√½·1."""
    return _with(HIPPO_LAGT, lambda b: np.full((n, 1), np.sqrt(0.5)), n=n, beta=beta)


def fourier(*, n, window=1.0):
    """√(2/w) c where b = 2c/w."""
    return _with(HIPPO_FOURIER, lambda b: b[:, None] * np.sqrt(window / 2), n=n, window=window)


def fourier_naive(*, n, window=1.0):
    """√(1/w) c where b = c/w."""
    return _with(HIPPO_FOURIER_NAIVE, lambda b: b[:, None] * np.sqrt(window), n=n, window=window)


def _with(hippo, factor, **sizes):
    A, b = hippo.reference(**sizes)
    return A, factor(b), b


SYSTEMS = {
    NPLR_LEGS: legs,
    NPLR_LEGT: legt,
    NPLR_LAGT: lagt,
    NPLR_FOURIER: fourier,
    NPLR_FOURIER_NAIVE: fourier_naive,
}
