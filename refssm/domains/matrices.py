"""Domains of discretizations: matrices of the state and of the input, weights of a rule."""

from dataclasses import replace

import numpy as np

from refssm.domains.domain import Domain, Numbers
from refssm.domains.maps import logarithmic, stable, turn

state_matrices = Domain(
    summary="state matrices without eigenvalues right of the imaginary axis: any, triangular, "
    "diagonal, singular, zero; rows off the diagonal up to 8 times the entry on it plus one",
    maps={
        "minus one": lambda a, b: -np.ones_like(a) + 0j,
        "normal": lambda a, b: turn(np.sqrt(-2 * np.log1p(-0.999 * a)), b),
        "integer": lambda a, b: np.round(8 * a - 6) + 1j * np.round(4 * b - 2),
        "tiny": lambda a, b: turn(logarithmic(1e-7, 1e-3, a), b),
        "exact": lambda a, b: -(2.0 ** np.round(8 * a)) + 0j,
        "zero": lambda a, b: np.zeros_like(a) + 0j,
    },
    tame=("minus one", "normal", "integer", "tiny"),
    textures=("each", "diagonal", "lower", "gaps"),
    fit=stable,
    structured={"close": ("nearly diagonal", "nearly symmetric")},
)

# of rules that solve with I − α dt A: elimination may have to exchange rows
solved_matrices = replace(
    state_matrices,
    summary=f"{state_matrices.summary}; a zero pivot in I − A or I − ½A",
    structured={"close": ("nearly diagonal", "nearly symmetric", "zero pivot")},
)

input_matrices = Domain(
    summary="input matrices: moduli 1e-2 to 1e2, any phase, exact integers",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "normal": lambda a, b: turn(np.sqrt(-2 * np.log1p(-0.999 * a)), b),
        "integer": lambda a, b: np.round(16 * a - 8) + 1j * np.round(16 * b - 8),
        "magnitudes": lambda a, b: turn(logarithmic(1e-2, 1e2, a), b),
    },
    tame=("one", "normal"),
    textures=("each", "constant", "gaps"),
)

weights = Numbers(
    "weights of the new state: 0 to 1, and beside 0, ½ and 1",
    (0.5, 0.0, 1.0, 0.25, 0.75),
    "a number from 0 to 1",
    0,
    1,
    close=(0.5 + 2**-18, 1 - 2**-18, 0.5 - 2**-18, 2**-27),
)
