"""Domains of kernels and of continuous systems: residues, poles, nodes, steps."""

import numpy as np

from refssm.domains.domain import ALIKE, Domain
from refssm.domains.maps import logarithmic, turn

residues = Domain(
    summary="residues C_n B_n: moduli 1e-6 to 1e3, any phase",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "normal": lambda a, b: turn(np.sqrt(-2 * np.log1p(-0.999 * a)), b),
        "magnitudes": lambda a, b: turn(logarithmic(1e-6, 1e3, a), b),
    },
    tame=("one", "normal"),
    textures=("each", "constant", "gaps", "subnormal"),
)

coefficients = Domain(
    summary="coefficients C_n B̄_n: moduli 1e-6 to 1e3, any phase, none so small that it underflows",
    maps=residues.maps,
    tame=residues.tame,
    textures=("each", "constant", "gaps"),
)

poles = Domain(
    summary="poles in the left half-plane: Re −1e2 to −1e-6, |Im| up to 1e3, some close together",
    maps={
        "near": lambda a, b: -0.5 - a + 10j * b,
        "wide": lambda a, b: -logarithmic(1e-6, 1e2, a) + 1j * (2e3 * b - 1e3),
        "real": lambda a, b: -logarithmic(1e-3, 1e2, a) + 0j,
        "ladder": lambda a, b: -0.5 + 1j * np.pi * np.round(32 * b),
        "grazing": lambda a, b: -logarithmic(1e-6, 1e-2, a) + 0.7j * np.round(10 * b),
    },
    tame=("near", "ladder"),
    textures=("each", "constant"),
    kind="complex",
    structured=ALIKE,
)

nodes = Domain(
    summary="nodes on and right of the imaginary axis, and beside poles, down to 1e-6 from one",
    maps={
        "near": lambda a, b: 0.5 + a + 10j * b,
        "axis": lambda a, b: 1j * logarithmic(1e-2, 1e3, a),
        "wide": lambda a, b: logarithmic(1e-6, 1e2, a) + 1j * (2e3 * b - 1e3),
        "circle": lambda a, b: 1 + 1e-3 * a + turn(np.ones_like(a), b),
    },
    tame=("near", "circle"),
    textures=("each", "beside"),
    kind="complex",
    meets="w",
)

exponents = Domain(
    summary="logarithms of discrete poles: rates −1e2 to 5e-3 a step, any phase, 1e-8 from 0, 0",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "slow": lambda a, b: -logarithmic(1e-4, 0.1, a) + 0j,
        "turning": lambda a, b: -logarithmic(1e-4, 0.3, a) + 2j * np.pi * (b - 0.5),
        "creeping": lambda a, b: -logarithmic(1e-8, 1e-4, a) + 1e-3j * (b - 0.5),
        "lasting": lambda a, b: -logarithmic(1e-6, 1e-3, a) + 2e-3j * (b - 0.5),
        "drifting": lambda a, b: -1e-5 * a + 1e-4j * (b - 0.5),
        "wide": lambda a, b: -logarithmic(1e-5, 1e2, a) + 2j * np.pi * (b - 0.5),
        "unit": lambda a, b: 2j * np.pi * (b - 0.5),
        "growing": lambda a, b: logarithmic(1e-5, 5e-3, a) + 2j * np.pi * (b - 0.5),
        "alternating": lambda a, b: -logarithmic(1e-5, 1e-2, a) + 1j * np.pi,
        "fast": lambda a, b: -logarithmic(1e-3, 1, a) + 60j * (b - 0.5),
    },
    tame=("zero", "slow", "turning", "creeping", "lasting", "unit", "alternating"),
    textures=("each", "constant"),
    exponent=True,
)

discrete_poles = Domain(
    summary="discrete poles that are no root of unity: e^(−rate), rates 1e-5 to 1e2, any phase, 0, "
    "1e-3 a step beyond the circle",
    maps={
        "half": lambda a, b: 0.5 * np.ones_like(a) + 0j,
        "turning": lambda a, b: turn(np.exp(-logarithmic(1e-3, 1, a)), b),
        "slow": lambda a, b: np.exp(-logarithmic(1e-4, 0.1, a)) + 0j,
        "wide": lambda a, b: turn(np.exp(-logarithmic(1e-5, 1e2, a)), b),
        "near pi": lambda a, b: turn(np.exp(-logarithmic(1e-5, 0.1, a)), 0.5 + 1e-3 * b),
        "growing": lambda a, b: turn(np.exp(logarithmic(1e-4, 1e-3, a)), b),
    },
    tame=("half", "turning", "slow"),
    textures=("each", "constant", "gaps"),
    structured=ALIKE,
)

steps = Domain(
    summary="steps: 1e-4 to 1, powers of two, real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "halves": lambda a, b: 2.0 ** -np.round(10 * a) + 0j,
        "usual": lambda a, b: logarithmic(1e-3, 0.1, a) + 0j,
        "wide": lambda a, b: logarithmic(1e-4, 1, a) + 0j,
    },
    tame=("one", "halves", "usual", "wide"),
    textures=("each", "constant"),
    kind="real",
    structured=ALIKE,
)

warping_steps = Domain(
    summary="steps that warp the circle: 1e-4 to 1e2, powers of two, 1, real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "powers": lambda a, b: 2.0 ** np.round(12 * a - 8) + 0j,
        "small": lambda a, b: logarithmic(1e-4, 1e-3, a) + 0j,
        "usual": lambda a, b: logarithmic(1e-3, 0.1, a) + 0j,
        "near one": lambda a, b: logarithmic(0.5, 2, a) + 0j,
        "wide": lambda a, b: logarithmic(1e-4, 1e2, a) + 0j,
    },
    tame=("one", "powers", "small", "usual", "near one", "wide"),
    textures=("each", "constant"),
    kind="real",
    finite=True,
    structured=ALIKE,
)

recency_powers = Domain(
    summary="powers of a recency bias: 0, −1 and −½, −4 to 4, real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "halves": lambda a, b: np.round(4 * a - 3) / 2 + 0j,
        "usual": lambda a, b: -2 * a + 0j,
        "wide": lambda a, b: 8 * a - 4 + 0j,
    },
    tame=("zero", "halves", "usual"),
    textures=("each", "constant"),
    kind="real",
    exponent=True,
)

recency_rates = Domain(
    summary="rates of a recency bias: 0, 1e-4 to 10 a parameter, some of them negative, real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: logarithmic(1e-3, 0.3, a) + 0j,
        "wide": lambda a, b: logarithmic(1e-4, 10, a) + 0j,
        "growing": lambda a, b: -0.1 * a + 0j,
    },
    tame=("zero", "usual"),
    textures=("each", "constant"),
    kind="real",
    exponent=True,
)

modes = Domain(
    summary="continuous modes: Re −1e2 to 0, |Im| up to 1e3, 1e-9 from 0, 0, minus powers of 2 "
    "down to −1024",
    maps={
        "minus one": lambda a, b: -np.ones_like(a) + 0j,
        "near": lambda a, b: -0.5 - a + 10j * (b - 0.5),
        "exact": lambda a, b: -(2.0 ** np.round(10 * a)) * np.where(b < 0.9, 1, 0) + 0j,
        "tiny": lambda a, b: turn(logarithmic(1e-9, 1e-3, a), 0.25 + 0.5 * b),
        "wide": lambda a, b: -logarithmic(1e-6, 1e2, a) + 1j * (2e3 * b - 1e3),
        "real": lambda a, b: -logarithmic(1e-3, 1e2, a) + 0j,
        "imaginary": lambda a, b: 1j * np.pi * np.round(32 * (a - 0.5)),
    },
    tame=("minus one", "near", "exact", "imaginary"),
    textures=("each", "constant", "gaps"),
    structured=ALIKE,
)

kernel_modes = Domain(
    summary="continuous modes of a kernel: Re −1e2 to 5e-3, |Im| up to 1e3, 1e-9 from 0, 0, and "
    "about −2, where Ā of the bilinear map is 0 at dt = 1",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "near": lambda a, b: -0.05 - 0.2 * a + 10j * (b - 0.5),  # tame: e^{−z k} stays normal
        "ladder": lambda a, b: -0.5 + 1j * np.pi * np.round(64 * b),  # S4D-Lin
        "exact": lambda a, b: -(2.0 ** np.round(10 * a)) * np.where(b < 0.9, 1, 0) + 0j,
        "two": lambda a, b: -2 + np.round(16 * a - 8) / 32 + 0.25j * np.round(4 * b - 2),
        "tiny": lambda a, b: turn(logarithmic(1e-9, 1e-3, a), 0.25 + 0.5 * b),
        "slow": lambda a, b: -logarithmic(1e-6, 0.1, a) + 0.1j * (b - 0.5),
        "wide": lambda a, b: -logarithmic(1e-6, 1e2, a) + 1j * (2e3 * b - 1e3),
        "real": lambda a, b: -logarithmic(1e-3, 1e2, a) + 0j,
        "imaginary": lambda a, b: 1j * np.pi * np.round(32 * (a - 0.5)),
        "growing": lambda a, b: logarithmic(1e-5, 5e-3, a) + 20j * (b - 0.5),
    },
    tame=("zero", "near", "imaginary"),
    textures=("each", "constant", "gaps"),
    structured=ALIKE,
)

signed_modes = Domain(
    summary="modes that are not 0: |Re| 1e-6 to 1e2 of either sign, |Im| up to 1e3, 1e-6 from 0, "
    "and beside multiples of 2πi/64, where a sum over 64 steps is 0 at dt = 1",
    maps={
        "half": lambda a, b: -0.5 * np.ones_like(a) + 0j,
        "near": lambda a, b: -0.05 - 0.2 * a + 10j * (b - 0.5),
        "ladder": lambda a, b: -0.5 + 1j * np.pi * np.round(64 * b),
        "either": lambda a, b: turn(logarithmic(1e-3, 10, a), b),
        "rising": lambda a, b: logarithmic(1e-4, 1e2, a) + 20j * (b - 0.5),
        "periodic": lambda a, b: 1e-4 * (a - 1.01) + 2j * np.pi * np.round(1 + 62 * b) / 64,
        "grazing": lambda a, b: turn(np.full_like(a, 1e-6), b) + 1j * np.pi * np.round(1 + 31 * a),
        "small": lambda a, b: turn(logarithmic(1e-6, 1e-2, a), b),
        "wide": lambda a, b: turn(logarithmic(1e-6, 1e2, a), np.round(b) / 2) + 2e3j * (b - 0.5),
        "real": lambda a, b: turn(logarithmic(1e-3, 1e2, a), np.round(b) / 2),
    },
    tame=("half", "near"),
    textures=("each", "constant"),
    structured=ALIKE,
)

damped_modes = Domain(
    summary="continuous modes that decay: Re −1e2 to −1e-3, |Im| up to 1e3",
    maps={
        "minus one": lambda a, b: -np.ones_like(a) + 0j,
        "near": lambda a, b: -0.5 - a + 10j * (b - 0.5),
        "ladder": lambda a, b: -0.5 + 1j * np.pi * np.round(32 * (a - 0.5)),
        "wide": lambda a, b: -logarithmic(1e-3, 1e2, a) + 1j * (2e3 * b - 1e3),
        "real": lambda a, b: -logarithmic(1e-3, 1e2, a) + 0j,
    },
    tame=("minus one", "near", "ladder"),
    textures=("each", "constant"),
)

distinct_modes = Domain(
    summary="continuous modes that decay, no two alike: Re −1e2 to −1e-2, |Im| up to 1e2",
    maps={
        "near": lambda a, b: -0.5 - a + 10j * b,
        "real": lambda a, b: -logarithmic(1e-2, 1e2, a) + 0j,
        "half": lambda a, b: -0.5 + 64j * (b - 0.5) - 1e-3 * a,
        "crowded": lambda a, b: -1 - 1e-3 * a + 1e-3j * b,
        "wide": lambda a, b: -logarithmic(1e-2, 1e2, a) + 2e2j * (b - 0.5),
    },
    tame=("near", "wide"),
)

gains = Domain(
    summary="entries of B and C, none of them 0: moduli 1e-3 to 1e3, any phase",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "near": lambda a, b: turn(0.5 + a, b),
        "magnitudes": lambda a, b: turn(logarithmic(1e-3, 1e3, a), b),
    },
    tame=("one", "near"),
    finite=True,
)

low_rank = Domain(
    summary="factors of a low-rank part: moduli 1e-2 to 10, any phase",
    maps={
        "half": lambda a, b: 0.5 * np.ones_like(a) + 0j,
        "normal": lambda a, b: turn(np.sqrt(-2 * np.log1p(-0.999 * a)), b),
        "magnitudes": lambda a, b: turn(logarithmic(1e-2, 10, a), b),
    },
    tame=("half", "normal"),
    textures=("each", "constant", "gaps"),
)

low_rank_partners = Domain(
    summary="each column of P times a number of Re ≥ 0, so that −P Qᴴ − Q Pᴴ ≤ 0 damps",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "near": lambda a, b: 0.5 + a + 1j * (b - 0.5),
        "turned": lambda a, b: 0.1 * a + 2j * (b - 0.5),
        "magnitudes": lambda a, b: logarithmic(1e-2, 2, a) + 0j,
    },
    tame=("one", "near"),
    follows="P",
)

low_rank_multiples = Domain(
    summary="each column of P times a number ≥ 0, so that −2 P Re(Qᴴ x) damps",
    maps={
        "one": low_rank_partners.maps["one"],
        "near": lambda a, b: 0.5 + a + 0j,
        "magnitudes": low_rank_partners.maps["magnitudes"],
    },
    tame=("one", "near"),
    follows="P",
)
