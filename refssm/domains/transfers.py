"""Domains of gramians and transfer functions: stable matrices, points away from poles."""

from dataclasses import replace

import numpy as np

from refssm.domains.conditions import decaying
from refssm.domains.domain import NOTHING, Domain
from refssm.domains.maps import damped, logarithmic, ringing, shrunk, turn
from refssm.domains.memories import settling_matrices
from refssm.domains.recurrences import fixed_decays, transitions
from refssm.domains.systems import nodes

damped_matrices = replace(
    settling_matrices,
    summary="state matrices that decay at a rate of 1/16 at least: any, triangular, diagonal",
    fit=damped,
    holds=decaying,
)

ringing_matrices = replace(
    settling_matrices,
    summary="state matrices that ring: skew-Hermitian, decaying at a rate of 1/16 to 3/16",
    fit=ringing,
    holds=decaying,
    structured=NOTHING,  # `ringing` makes a matrix skew-Hermitian
)

contraction_matrices = replace(
    transitions,
    summary="matrices whose rows sum to at most 1 − 2^-10 in modulus: any, triangular, diagonal, "
    "permutations with weights, with gaps, zero",
    maps={
        "half": lambda a, b: 0.5 * np.ones_like(a) + 0j,
        **transitions.maps,
        "slow": fixed_decays.maps["slow"],
    },
    tame=("half", "normal", "halves"),
    tame_textures=("each",),
    exponent=False,
    fit=shrunk,
)

frequencies = replace(
    nodes,
    summary="frequencies: on the imaginary axis, 1e-2 to 1e3, and right of it by 1e-6 to 1e2",
    textures=("each",),
    meets="",
)

outer_points = Domain(
    summary="points on the unit circle and outside: moduli 1 to 1e3, any phase",
    maps={
        "one": lambda a, b: turn(np.ones_like(a), b),
        "wide": lambda a, b: turn(logarithmic(1.001, 1e3, a), b),
        "near": lambda a, b: turn(1.01 + a, b),
        "circle": lambda a, b: turn(1.001 * np.ones_like(a), b),
    },
    tame=("near",),
    kind="complex",
)
