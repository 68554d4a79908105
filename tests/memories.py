"""HiPPO's (A, B) by their closed forms, in double precision, for facts about memories."""

import numpy as np
from scipy.special import binom, gamma


def legs(n):
    """Scaled Legendre."""
    i = np.arange(n)
    B = np.sqrt(2 * i + 1.0)
    return -np.tril(np.outer(B, B), -1) - np.diag(i + 1.0), B


def legt(n, window=1.0):
    """Translated Legendre."""
    i, k = np.indices((n, n))
    B = np.sqrt(2 * np.arange(n) + 1.0)
    return -np.outer(B, B) * np.where(k <= i, 1, (-1.0) ** (i - k)) / window, B / window


def lmu(n, window=1.0):
    """Legendre memory unit."""
    i, k = np.indices((n, n))
    A = (2 * i + 1) * np.where(i < k, -1, (-1.0) ** (i - k + 1)) / window
    i = np.arange(n)
    return A, (-1.0) ** i * (2 * i + 1) / window


def lagt(n, alpha=0.0, beta=1.0):
    """Translated Laguerre."""
    i = np.arange(n)
    size = np.sqrt(gamma(i + alpha + 1) / gamma(i + 1))
    A = -np.tril(np.ones((n, n)), -1) - (1 + beta) / 2 * np.eye(n)
    B = binom(i + alpha, i) * gamma(1 - alpha) ** -0.5 * beta ** ((1 - alpha) / 2)
    return A * size / size[:, None], B / size


def fourier(n, window=1.0, ends=2):
    """Sliding Fourier window: twice at the mean of the ends, once the naive form."""
    b = np.where(np.arange(n) % 2, 0, np.sqrt(2.0))
    b[:1] = 1
    S, k = np.zeros((n, n)), np.arange(n // 2)
    S[2 * k, 2 * k + 1], S[2 * k + 1, 2 * k] = -2 * np.pi * k / window, 2 * np.pi * k / window
    return S - ends * np.outer(b, b) / window, ends * b / window


SLIDING = {"legt": legt, "lmu": lmu, "lagt": lagt, "fourier": fourier}
