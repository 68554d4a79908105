"""Domains of matrices and of what makes them: rules, decompositions, constructors.

Matrices of the state and of the input, and weights of a rule; sizes of matrices to decompose, since
the judge's work is cubic in them, in long double; sizes and the parameters of a measure.
"""

from dataclasses import replace

import numpy as np

from refssm.domains.domain import Counts, Domain, Numbers
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


mode_orders = Counts("1 to 65 modes", (3, 1, 2, 4, 5, 8, 9, 16, 31, 32, 33, 64, 65))
even_mode_orders = Counts(
    "2 to 66 modes, an even number",
    (4, 2, 6, 8, 10, 16, 30, 32, 34, 64, 66),
    "an even integer >= 2",
    multiple=2,
)
block_counts = Counts("1, 2 or 4 blocks", (1, 2, 4))
block_orders = Counts(  # every number of blocks divides every size
    "4 to 64 modes of all blocks together, a multiple of 4", (4, 8, 12, 16, 32, 36, 64)
)
filter_lengths = Counts("24 to 130 samples", (24, 25, 32, 33, 64, 65, 100, 127, 128, 130))
filter_counts = Counts(
    "1 to 24 filters, never more than samples",
    (3, 1, 2, 4, 8, 15, 16, 17, 23, 24, 24),
    "an integer from 1 to l",
    at_most="l",
)


orders = Counts(
    "1 to 129 states", (3, 1, 2, 4, 5, 8, 16, 31, 32, 33, 64, 65, 127, 128, 129, 64, 65, 100)
)
even_orders = Counts(
    "2 to 130 states, an even number",
    (4, 2, 6, 8, 16, 30, 32, 34, 64, 66, 126, 128, 130, 64, 66, 100),
    "an even integer >= 2",
    multiple=2,
)
windows = Numbers(
    "lengths of a window: 2^-10 to 1000",
    (1.0, 2.0, 0.5, 0.75, 3.0, 10.0, 1000.0, 2.0**-10, 0.1, 0.3),  # float32 has no 0.1
    "a number above 0",
    np.nextafter(0, 1),
    np.finfo(float).max,
)
laguerre_exponents = Numbers(
    "exponents of a Laguerre measure: −15/16 to 15/16",
    (0.0, 0.5, -0.5, 0.25, -0.75, 0.9375, -0.9375, 2.0**-11),
    "a number between -1 and 1, both excluded",
    np.nextafter(-1, 0),
    np.nextafter(1, 0),
)
laguerre_decays = Numbers(
    "decay rates of a Laguerre measure: 2^-10 to 64",
    (1.0, 0.5, 2.0, 0.25, 3.0, 64.0, 2.0**-10, 0.3),
    "a number above 0",
    np.nextafter(0, 1),
    np.finfo(float).max,
)
