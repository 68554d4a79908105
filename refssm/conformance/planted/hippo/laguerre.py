"""Planted bugs in HiPPO with Laguerre polynomials."""

import numpy as np
from scipy.special import binom, gamma, gammaln

from refssm.conformance.planted.hippo.base import Making
from refssm.hippo import HIPPO_LAGT

LAGT = Making(HIPPO_LAGT)
LAGT.usual()
right = LAGT.right


def scale(i, alpha):
    """L_i = √(Γ(i+α+1)/i!)."""
    return np.sqrt(gamma(1 + alpha) * binom(i + alpha, i))


def lower(i, k, alpha, on):
    """−L_k/L_i below the diagonal, `on` on it."""
    return np.where(i > k, -scale(k, alpha) / scale(i, alpha), np.where(i == k, on, 0.0))


def as_s4(*, n, alpha, beta):
    """S4's lagt, the limit β → 0 of (A, B/√β)."""
    return np.eye(n) / 2 - np.tril(np.ones((n, n))), np.ones(n)


def by_logarithms(*, n, alpha, beta):
    """The ratios of Γ from exponentials of logarithms, as S4's glagt: off by log Γ(n)·u."""
    i = np.arange(n)
    L = np.exp(0.5 * (gammaln(i + alpha + 1) - gammaln(i + 1)))
    A = -np.tril(L / L[:, None], -1) - (1 + beta) / 2 * np.eye(n)
    return A, right(n=n, alpha=alpha, beta=beta)[1]


LAGT.wrong("as_s4", "S4's lagt: diagonal −½, B = 1", as_s4)
LAGT.wrong("by_logarithms", "exponentials of logarithms of Γ", by_logarithms)
LAGT.wrong(
    "alpha_ignored", "α = 0 always", lambda *, n, alpha, beta: right(n=n, alpha=0.0, beta=beta)
)
LAGT.wrong(
    "beta_ignored", "β = 1 always", lambda *, n, alpha, beta: right(n=n, alpha=alpha, beta=1.0)
)
LAGT.wrong("alpha_sign", "−α for α", lambda *, n, alpha, beta: right(n=n, alpha=-alpha, beta=beta))
LAGT.wrong("beta_inverted", "1/β", lambda *, n, alpha, beta: right(n=n, alpha=alpha, beta=1 / beta))
LAGT.entries("diagonal", "−1 on it", lambda i, k, alpha, beta: lower(i, k, alpha, -1.0))
LAGT.entries(
    "diagonal_of_beta", "−β/2 on it", lambda i, k, alpha, beta: lower(i, k, alpha, -beta / 2)
)
LAGT.entries(
    "diagonal_of_tilt", "(1−β)/2 − 1", lambda i, k, alpha, beta: lower(i, k, alpha, (1 - beta) / 2)
)
LAGT.entries(
    "scaled_back",
    "L A₀ L⁻¹",
    lambda i, k, alpha, beta: np.where(
        i > k, -scale(i, alpha) / scale(k, alpha), np.where(i == k, -(1 + beta) / 2, 0)
    ),
)
LAGT.entries(
    "unscaled",
    "A₀ for A",
    lambda i, k, alpha, beta: np.where(i > k, -1.0, np.where(i == k, -(1 + beta) / 2, 0)),
)
LAGT.entries(
    "rates_below",
    "β times what is below the diagonal",
    lambda i, k, alpha, beta: lower(i, k, alpha, -(1 + beta) / 2) * np.where(i > k, beta, 1),
)
LAGT.entries(
    "B_no_gamma",
    "B without Γ(1−α)",
    B=lambda i, alpha, beta: binom(i + alpha, i) / scale(i, alpha) * beta ** ((1 - alpha) / 2),
)
LAGT.entries(
    "B_gamma_plus",
    "Γ(1+α) for Γ(1−α)",
    B=lambda i, alpha, beta: (
        binom(i + alpha, i) / scale(i, alpha) / gamma(1 + alpha) ** 0.5 * beta ** ((1 - alpha) / 2)
    ),
)
LAGT.entries(
    "B_unscaled",
    "B without 1/L",
    B=lambda i, alpha, beta: (
        binom(i + alpha, i) / gamma(1 - alpha) ** 0.5 * beta ** ((1 - alpha) / 2)
    ),
)
LAGT.entries(
    "B_power",
    "β^{1−α} for its root",
    B=lambda i, alpha, beta: (
        binom(i + alpha, i) / scale(i, alpha) / gamma(1 - alpha) ** 0.5 * beta ** (1 - alpha)
    ),
)
LAGT.entries("B_ones", "B = 1", B=lambda i, alpha, beta: np.ones_like(i))
LAGT.entries("B_rate", "B = β", B=lambda i, alpha, beta: np.full_like(i, beta))

DEVIATIONS = LAGT.bugs
