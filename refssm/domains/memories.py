"""Domains of memories: stable matrices, windows, delays, scalings."""

from dataclasses import replace

import numpy as np

from refssm.domains.domain import Domain, Numbers
from refssm.domains.maps import logarithmic, settling, turn
from refssm.domains.matrices import input_matrices, state_matrices
from refssm.domains.systems import residues

SMALLEST = float(np.finfo(float).smallest_subnormal)
LARGEST = float(np.finfo(float).max)

settling_matrices = replace(
    state_matrices,
    summary="memories whose largest state does not grow: any, triangular, diagonal, singular, zero",
    fit=settling,
)
matrices = replace(input_matrices, summary="any matrices: moduli 1e-2 to 1e2, exact integers")
input_vectors = replace(input_matrices, summary="input vectors: moduli 1e-2 to 1e2, exact integers")

memories = replace(
    residues, summary="states of a memory: moduli 1e-6 to 1e3, any phase", finite=True
)

scales = Domain(
    summary="scales of states: moduli 1e-3 to 1e3, any phase, signs, powers of two",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "signs": lambda a, b: turn(np.ones_like(a), np.round(2 * b) / 2),
        "near": lambda a, b: turn(0.5 + a, b),
        "roots": lambda a, b: np.sqrt(2 * np.round(64 * a) + 1) + 0j,
        "halves": lambda a, b: 2.0 ** np.round(20 * a - 10) + 0j,
        "wide": lambda a, b: turn(logarithmic(1e-3, 1e3, a), b),
    },
    tame=("one", "near", "roots"),
)

fractions = Domain(
    summary="times before now, in a window of length 1: 0 to 1, both ends, 1e-6 from them; real",
    maps={
        "half": lambda a, b: np.full_like(a, 0.5) + 0j,
        "inside": lambda a, b: a + 0j,
        "sixteenths": lambda a, b: np.round(16 * a) / 16 + 0j,
        "recent": lambda a, b: np.where(a < 0.1, 0, logarithmic(1e-6, 1, a)) + 0j,
        "oldest": lambda a, b: 1 - np.where(a < 0.1, 0, logarithmic(1e-6, 1, a)) + 0j,
    },
    tame=("half", "inside", "sixteenths"),
    kind="real",
)

elapsed_times = Domain(
    summary="times since the start, in steps: 1 to 1e4, whole and halves, powers of two; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "first": lambda a, b: np.round(1 + 7 * a) + 0j,
        "early": lambda a, b: np.round(1 + 7 * a) + 0.5 + 0j,
        "whole": lambda a, b: np.round(logarithmic(1, 1e3, a)) + 0j,
        "middle": lambda a, b: np.round(logarithmic(1, 1e3, a)) + 0.5 + 0j,
        "doubled": lambda a, b: 2.0 ** np.round(10 * a) + 0j,
        "wide": lambda a, b: logarithmic(1, 1e4, a) + 0j,
    },
    tame=("one", "first", "early", "whole", "middle", "wide"),
    textures=("each", "constant"),
    kind="real",
)

delays = Domain(
    summary="times before now: 1e-4 to 30; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "near": lambda a, b: 0.25 + 2 * a + 0j,
        "wide": lambda a, b: logarithmic(1e-4, 30, a) + 0j,
    },
    tame=("one", "near"),
    kind="real",
)

long_windows = Numbers(
    "windows: 1 to 8", (1.0, 2.0, 1.5, 8.0), "a number above 0", SMALLEST, LARGEST
)
exponents_of_laguerre = Numbers(
    "exponents of Laguerre polynomials: −½ to ½",
    (0.0, 0.5, -0.5, 0.25),
    "a number above −1 and below 1",
    -1 + 2**-53,
    1 - 2**-53,
)
fading_rates = Numbers(
    "decay rates of the past: ½ to 2", (1.0, 0.5, 2.0), "a number above 0", SMALLEST, LARGEST
)
powers_of_time = Numbers(  # of few binary digits: a rounded p is another memory
    "powers p of the map t = s^p: ½ to 4",
    (2.5, 1.0, 0.5, 2.0, 4.0),  # 2.5 first: p t of simple numbers is then no simple eigenvalue
    "a number above 0",
    SMALLEST,
    LARGEST,
)
