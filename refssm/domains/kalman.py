"""Domains of linear Gaussian systems: transitions, observations, covariances, measurements."""

from dataclasses import replace

import numpy as np

from refssm.domains.conditions import positive_definite
from refssm.domains.domain import ALIKE, Domain
from refssm.domains.maps import logarithmic
from refssm.domains.transfers import contraction_matrices


def dominant(X):
    """The symmetric part of X with a positive diagonal that outweighs the rest of each row twice.

    So all eigenvalues are between half of the smallest diagonal entry and 1½ of the largest, and
    rounding to any type leaves the matrix symmetric and positive definite.
    """
    if X.size == 0:
        return X
    I = np.eye(X.shape[-1])
    diagonal = np.where(np.abs(X) > 0, np.abs(X), 1) * I
    rest = (X + X.swapaxes(-1, -2)) / 2 * (1 - I)
    size = np.abs(rest).sum(-1, keepdims=True).max(-2, keepdims=True)
    least = diagonal.sum(-1, keepdims=True).min(-2, keepdims=True)
    return diagonal + rest * np.minimum(1, least / (2 * np.where(size > 0, size, 1)))


covariances = Domain(
    summary="covariances: symmetric, the diagonal, 1/16 to 16, outweighs the rest of its row twice",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "near": lambda a, b: np.where(b < 0.5, 1, -1) * (0.5 + a) + 0j,
        "powers": lambda a, b: np.where(b < 0.5, 1, -1) * 2.0 ** np.round(4 * a - 2) + 0j,
        "wide": lambda a, b: np.where(b < 0.5, 1, -1) * logarithmic(1 / 16, 16, a) + 0j,
    },
    tame=("one", "near"),
    textures=("each", "constant", "diagonal"),
    kind="real",
    finite=True,
    fit=dominant,
    holds=positive_definite,
)

observation_matrices = Domain(
    summary="observation matrices: moduli 1/16 to 2, whole numbers to 2, some entries 0; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "near": lambda a, b: np.where(b < 0.5, 1, -1) * (0.5 + a) + 0j,
        "integer": lambda a, b: np.round(4 * a - 2) + 0j,
        "wide": lambda a, b: np.where(b < 0.5, 1, -1) * logarithmic(1 / 16, 2, a) + 0j,
    },
    tame=("one", "near"),
    textures=("each", "constant", "gaps", "diagonal"),
    kind="real",
    finite=True,
    structured=ALIKE,
)

observed_transitions = replace(
    contraction_matrices,
    summary=f"{contraction_matrices.summary}; real",
    kind="real",
    finite=True,
)

measurements = Domain(
    summary="measurements: magnitudes 1e-3 to 1e3, whole numbers, impulses; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "normal": lambda a, b: np.where(b < 0.5, 1, -1) * np.sqrt(-2 * np.log1p(-0.999 * a)) + 0j,
        "integer": lambda a, b: np.round(16 * a - 8) + 0j,
        "magnitudes": lambda a, b: np.where(b < 0.5, 1, -1) * logarithmic(1e-3, 1e3, a) + 0j,
    },
    tame=("one", "normal"),
    textures=("each", "constant", "impulse", "late", "gaps"),
    kind="real",
    finite=True,
    structured={"strong": ("first",)},
)

prior_means = replace(
    measurements,
    summary="means of the state before: magnitudes 1e-3 to 1e3, whole numbers; real",
    textures=("each", "constant", "gaps"),
    structured=ALIKE,
)
