"""Domains of recurrences: constant decays, step sizes and their pre-activations, gates, resets."""

from dataclasses import replace

import numpy as np

from refssm.domains.domain import ALIKE, WAVE_TEXTURES, Counts, Domain, Numbers
from refssm.domains.maps import compass, contracting, logarithmic, turn
from refssm.domains.matrices import input_matrices
from refssm.domains.signals import signals, states

fixed_decays = Domain(
    summary="constant decays: e^(−rate), rates 1e-5 to 1e2, any phase, 0, |a| = 1, 1e-3 beyond",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "slow": lambda a, b: np.exp(-logarithmic(1e-4, 0.1, a)) + 0j,
        "turning": lambda a, b: turn(np.exp(-logarithmic(1e-4, 0.3, a)), b),
        "wide": lambda a, b: turn(np.exp(-logarithmic(1e-5, 1e2, a)), b),
        "unit": lambda a, b: turn(np.ones_like(a), b),
        "near 0": lambda a, b: turn(np.exp(-logarithmic(1e-5, 0.1, a)), 1e-3 * b),
        "near pi": lambda a, b: turn(np.exp(-logarithmic(1e-5, 0.1, a)), 0.5 + 1e-3 * b),
        "growing": lambda a, b: turn(np.exp(logarithmic(1e-5, 1e-3, a)), b),
        "compass": compass,
    },
    tame=("one", "slow", "turning", "unit"),
    textures=("each", "constant", "gaps"),
    exponent=True,
    structured=ALIKE,
)

contractions = Domain(
    summary="matrices whose rows sum to at most 1 in modulus: any, triangular, diagonal, zero",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "normal": signals.maps["normal"],
        "integer": lambda a, b: np.round(4 * a - 2) + 1j * np.round(4 * b - 2),
        "halves": lambda a, b: turn(2.0 ** -np.round(6 * a), b),
    },
    tame=("one", "normal", "halves"),
    textures=("each", "diagonal", "lower", "gaps"),
    fit=contracting,
    exponent=True,
    structured={"close": ("nearly diagonal", "nearly symmetric")},
)

transitions = replace(
    contractions,
    summary="matrices whose rows sum to at most 1 in modulus: any, triangular, diagonal, zero, and "
    "permutations with weights, whose powers fade at rates from 0 to 0.3 a step",
    maps={
        **contractions.maps,
        "unit": fixed_decays.maps["unit"],
        "turning": fixed_decays.maps["turning"],
    },
    tame=("one", "unit"),
    textures=(*contractions.textures, "cycle"),
    tame_textures=("cycle",),  # the powers of other contractions underflow
)

step_matrices = replace(
    transitions,
    summary="a matrix for each step, rows of at most 1 in modulus: any, triangular, permutations",
    exponent=False,
    decay=True,
)

projections = Domain(
    summary="coefficients: moduli 1e-6 to 1e3, any phase, exact integers",
    maps=signals.maps,
    tame=signals.tame,
    textures=WAVE_TEXTURES,
)

real_matrices = replace(
    input_matrices,
    summary="input matrices, always real: moduli 1e-2 to 1e2, exact integers",
    kind="real",
)
real_signals = replace(
    signals,
    summary="signals, always real: magnitudes 1e-6 to 1e3 per channel, exact integers, impulses",
    kind="real",
)
real_projections = replace(
    projections,
    summary="coefficients, always real: magnitudes 1e-6 to 1e3, exact integers",
    kind="real",
)
real_states = replace(
    states, summary="initial states, always real: up to 1e2, exact integers", kind="real"
)

step_sizes = Domain(
    summary="steps after the softplus: 1e-6 to 10, powers of two, 0 (padding), real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "usual": lambda a, b: logarithmic(1e-3, 0.1, a) + 0j,
        "halves": lambda a, b: 2.0 ** -np.round(10 * a) + 0j,
        "wide": lambda a, b: logarithmic(1e-6, 10, a) + 0j,
        "padded": lambda a, b: np.where(a < 0.3, 0, logarithmic(1e-3, 1, a)) + 0j,
    },
    tame=("one", "usual", "halves"),
    textures=("each", "constant", "gaps"),
    kind="real",
    structured={"close": ("alike",), "strong": ("stretched",)},
)

rates = Domain(
    summary="rates A of the state: −1e2 to −1e-6, −1 to −16 as Mamba starts, 0, |Im| up to 1e3",
    maps={
        "minus one": lambda a, b: -np.ones_like(a) + 0j,
        "ladder": lambda a, b: -np.round(1 + 15 * a) + 0j,
        "near": lambda a, b: -0.5 - a + 10j * (b - 0.5),
        "real": lambda a, b: -logarithmic(1e-6, 1e2, a) + 0j,
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "imaginary": lambda a, b: 1j * np.pi * np.round(32 * (a - 0.5)),
        "wide": lambda a, b: -logarithmic(1e-6, 1e2, a) + 1j * (2e3 * b - 1e3),
    },
    tame=("minus one", "ladder", "near"),
    textures=("each", "constant", "gaps"),
    exponent=True,
    structured={"close": ("alike",), "strong": ("ten",)},
)

head_rates = replace(
    rates,
    summary="rates A of a head: −1e2 to −1e-6, −1 to −16 as Mamba-2 starts, 0, real",
    maps={name: rates.maps[name] for name in ("minus one", "ladder", "real", "zero")},
    tame=("minus one", "ladder"),
    kind="real",
)

preactivations = Domain(
    summary="steps before the softplus: −30 to 100, often near −18, −12, −6, 0, 6, 8, 12, 25; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: 5 * a - 7 + 0j,
        "places": lambda a, b: np.array([-18, -12, -6, 0, 6, 8, 12, 25])[_eighth(a)] + a + 0j,
        "small": lambda a, b: 17 * a - 20 + 0j,
        "wide": lambda a, b: 130 * a - 30 + 0j,
        "saturated": lambda a, b: 80 * a + 20 + 0j,
    },
    tame=("zero", "usual"),
    textures=("each", "constant"),
    kind="real",
    structured={"close": ("alike",), "strong": ("stretched",), "bend": ("bend",)},
)

logits = Domain(
    summary="numbers before a logistic function: 0, −1 to 1 as Mega starts, −20 to 20; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: 2 * a - 1 + 0j,
        "small": lambda a, b: -20 + 17 * a + 0j,
        "either sign": lambda a, b: 8 * a - 4 + 0j,
        "wide": lambda a, b: 40 * a - 20 + 0j,
        "saturated": lambda a, b: 3 + 17 * a + 0j,
    },
    tame=("zero", "usual"),
    textures=("each", "constant"),
    kind="real",
    exponent=True,
)

biases = Domain(
    summary="biases of the steps: 0, −7 to −2 as Mamba starts, −5 to 5; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: 5 * a - 7 + 0j,
        "either sign": lambda a, b: 10 * a - 5 + 0j,
    },
    tame=("zero", "usual"),
    textures=("each", "constant"),
    kind="real",
)

gates = Domain(
    summary="gates before the SiLU: 0, −85 to 100, beside its minimum near −1.28; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "usual": lambda a, b: 8 * a - 4 + 0j,
        # above −85: below it z/(1 + e^{−z}) overflows in single precision
        "wide": lambda a, b: 185 * a - 85 + 0j,
        "minimum": lambda a, b: -1.2785 + 0.01 * (a - 0.5) + 0j,
    },
    tame=("one", "usual"),
    textures=("each", "constant", "gaps"),  # 0 everywhere would hide the scan
    kind="real",
    structured={"bend": ("near 1",)},
)

log_decays = Domain(
    summary="logarithms of decays: −1e2 to 2e-3 a step, 0, −1, any phase",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "minus one": lambda a, b: -np.ones_like(a) + 0j,
        "slow": lambda a, b: -logarithmic(1e-4, 0.1, a) + 0j,
        "turning": lambda a, b: -logarithmic(1e-4, 0.3, a) + 2j * np.pi * (b - 0.5),
        "wide": lambda a, b: -logarithmic(1e-5, 1e2, a) + 2j * np.pi * (b - 0.5),
        "steep": lambda a, b: -logarithmic(5, 1e2, a) + 0j,
        "mixed": lambda a, b: np.where(a < 0.1, -100, -logarithmic(1e-4, 0.1, a)) + 0j,
        "growing": lambda a, b: logarithmic(1e-5, 2e-3, a) + 2j * np.pi * (b - 0.5),
    },
    tame=("zero", "slow", "turning"),
    textures=("each", "constant", "channel", "gaps"),
    decay=True,
    structured={"close": ("alike",), "strong": ("lowered",)},
)

resets = Domain(
    summary="true where a sequence begins: at no step, one, 2, 10, 50 or 90 % of them, all",
    maps={
        "none": lambda a, b: np.zeros_like(a) + 0j,
        "rare": lambda a, b: (a < 0.02) + 0j,
        "some": lambda a, b: (a < 0.1) + 0j,
        "half": lambda a, b: (a < 0.5) + 0j,
        "most": lambda a, b: (a < 0.9) + 0j,  # resets where a block begins, too
        "all": lambda a, b: np.ones_like(a) + 0j,
    },
    tame=("none", "some", "half", "most"),
    textures=("each", "impulse", "each", "late"),  # a single place in every second case
    kind="flag",
)


def _rising(parts):
    """Each part of the length at least as large as those before."""
    return np.sort(parts, axis=-1)


def _to_the_end(parts):
    """The same; the last one is the whole length."""
    parts = _rising(parts)
    parts[..., -1:] = 1
    return parts


places = Domain(
    summary="places in a sequence, as numbers of steps before them: rising, some twice, 0 to all",
    maps={
        "start": lambda a, b: np.zeros_like(a) + 0j,
        "any": lambda a, b: a + 0j,
        "few": lambda a, b: np.floor(5 * a) / 4 + 0j,  # several sequences of length 0
        "ends": lambda a, b: np.clip(2 * a - 0.5, 0, 1) + 0j,  # a quarter at each end
        "early": lambda a, b: 0.1 * a + 0j,
        "late": lambda a, b: 1 - 0.1 * a + 0j,
    },
    tame=("any", "few"),
    tame_textures=("each",),
    kind="offsets",
    fit=_rising,
)
sequence_ends = replace(
    places,
    summary="ends of packed sequences, one after the other: rising to the length, some empty",
    fit=_to_the_end,
)

# of Δ = softplus(dt + dt_bias): every floor is below every ceiling, and no Δ above 105 is drawn
step_floors = Numbers(
    "lower limits of a step: 0, 1e-3 and 1/16",
    (0.0, 1e-3, 0.0, 2.0**-4),
    "a number from 0 to dt_max",
    0,
    at_most="dt_max",
)
step_ceilings = Numbers(
    "upper limits of a step: 1024, which no step reaches, 0.1, 1 and 8",
    (1024.0, 0.1, 1024.0, 1.0, 1024.0, 8.0),  # limits hide the ends of the softplus
    "a number from 0 to infinity",
    0,
)
gate_floors = Numbers(
    "least logarithms of decays: −8 to −½",
    (-5.0, -1.0, -0.5, -8.0),
    "a number below 0",
    largest=-(2.0**-100),
)

liquid_degrees = Counts("products of 1 to 4 inputs", (2, 1, 3, 4))
chunk_sizes = Counts("1 to 256, and longer than the sequence", (16, 64, 1, 2, 5, 32, 256, 4096))


def _eighth(a):
    """Index of the part of [0, 1] that contains a; eight equal parts."""
    return np.minimum((8 * a).astype(int), 7)
