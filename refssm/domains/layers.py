"""Domains of layers: signals, parameters and states about as large as those that `init` draws.

A layer is a chain of operators and functions of single numbers. Each operator is judged alone on
numbers of every size; a layer is judged where it is used, and where no function of the chain
saturates or overflows. Weights are divided by the root of the number of their inputs, as `init`
does, so that no size makes a signal large.
"""

from dataclasses import replace

import numpy as np

from refssm.domains.domain import WAVE_TEXTURES, Domain
from refssm.domains.maps import logarithmic, turn
from refssm.domains.recurrences import contractions
from refssm.domains.signals import signals


def over_last(a):
    """Divided by the root of the last axis: a matrix that multiplies a column."""
    return a / np.sqrt(max(1, a.shape[-1]))


def over_rows(a):
    """Divided by the root of the axis before the last: a matrix that multiplies a row."""
    return a / np.sqrt(max(1, a.shape[-2]))


ENTRIES = {
    "half": lambda a, b: 0.5 * np.ones_like(a) + 0j,
    "normal": signals.maps["normal"],
    "uniform": turn,
}

layer_signals = Domain(
    summary="signals of a layer: magnitudes 1e-3 to 10, small integers, impulses; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "normal": signals.maps["normal"],
        "positive": signals.maps["positive"],
        "integer": lambda a, b: np.round(8 * a - 4) + 0j,
        "magnitudes": lambda a, b: turn(logarithmic(1e-3, 10, a), b),
    },
    tame=("one", "normal", "positive"),
    textures=WAVE_TEXTURES,
    kind="real",
)

weights_of_rows = Domain(
    summary="weights of a row times a matrix: up to 4 divided by the root of the inputs; real",
    maps=ENTRIES,
    tame=("half", "normal", "uniform"),
    textures=("each", "constant", "gaps"),
    kind="real",
    fit=over_rows,
)

complex_weights_of_rows = replace(
    weights_of_rows,
    summary="weights of a row times a matrix: moduli up to 4 divided by the root of the inputs",
    kind="complex",
)

weights_of_taps = Domain(
    summary="taps of a short convolution: up to 4 divided by the root of their number; real",
    maps=ENTRIES,
    tame=("half", "normal", "uniform"),
    textures=("each", "constant", "gaps"),
    kind="real",
    fit=over_last,
    padded=True,
)

recurrent_weights = replace(
    contractions,
    summary="recurrent weights, whose rows sum to at most 1 in modulus; real",
    kind="real",
)

markov_parameters = replace(
    weights_of_taps,
    summary="Markov parameters: up to 4 divided by the root of their number; real",
    padded=False,
)

complex_weights = Domain(
    summary="entries of B and C of several inputs: moduli up to 4 divided by the root of them",
    maps=ENTRIES,
    tame=("half", "normal", "uniform"),
    textures=("each", "constant", "gaps"),
    kind="complex",
    fit=over_last,
)

complex_entries = replace(
    complex_weights,
    summary="entries of B, C and P of one input: moduli up to 4, and up to 32",
    maps={**ENTRIES, "large": lambda a, b: turn(logarithmic(0.1, 32, a), b)},  # as HiPPO's P
    fit=None,
)

skips = Domain(
    summary="weights of the skip connection: 1, moduli up to 4; real",
    maps={"one": lambda a, b: np.ones_like(a) + 0j, **ENTRIES},
    tame=("one", "normal"),
    textures=("each", "constant"),
    kind="real",
)

layer_scales = replace(skips, summary="weights of a norm: 1, moduli up to 4; real")

average_weights = replace(
    skips, summary="input and output weights of moving averages: 1, moduli up to 4; real"
)

shifts = Domain(
    summary="biases of a linear map: 0, −1 to 1; real",
    maps={"zero": lambda a, b: np.zeros_like(a) + 0j, "uniform": turn},
    tame=("zero", "uniform"),
    textures=("each", "constant"),
    kind="real",
)

log_steps = Domain(
    summary="logarithms of steps: of 1e-4 to 1; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: np.log(logarithmic(1e-3, 0.1, a)) + 0j,
        "wide": lambda a, b: np.log(logarithmic(1e-4, 1, a)) + 0j,
    },
    tame=("zero", "usual"),
    textures=("each", "constant"),
    kind="real",
)

sample_gaps = Domain(
    summary="gaps between samples: 1, 0 to 4, 1e-2 to 10; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "grid": lambda a, b: np.round(4 * a) + 0j,  # 0: two samples at one time
        "usual": lambda a, b: logarithmic(0.1, 4, a) + 0j,
        "wide": lambda a, b: logarithmic(1e-2, 10, a) + 0j,
    },
    tame=("one", "grid", "usual"),
    textures=("each", "constant", "gaps"),
    kind="real",
)

log_rates = Domain(
    summary="logarithms of rates: of 1, ½, 1 to 16, of 1e-2 to 1e2; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "half": lambda a, b: np.log(0.5) * np.ones_like(a) + 0j,
        "ladder": lambda a, b: np.log(np.round(1 + 15 * a)) + 0j,
        "wide": lambda a, b: np.log(logarithmic(1e-2, 1e2, a)) + 0j,
    },
    tame=("zero", "half", "ladder"),
    textures=("each", "constant"),
    kind="real",
    exponent=True,
)

layer_frequencies = Domain(
    summary="imaginary parts of poles: 0, multiples of π up to 32π, 0 to 10, 0.1 to 2e3; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "ladder": lambda a, b: np.pi * np.round(32 * a) + 0j,
        "near": lambda a, b: 10 * a + 0j,
        "steep": lambda a, b: logarithmic(0.1, 2e3, a) + 0j,  # as those of HiPPO
    },
    tame=("zero", "ladder", "near"),
    textures=("each", "constant"),
    kind="real",
)

layer_modes = Domain(
    summary="continuous modes of a layer: Re −16 to −1e-2, |Im| up to 2e3",
    maps={
        "minus one": lambda a, b: -np.ones_like(a) + 0j,
        "near": lambda a, b: -0.5 - a + 10j * (b - 0.5),
        "ladder": lambda a, b: -0.5 + 1j * np.pi * np.round(32 * b),
        "wide": lambda a, b: -logarithmic(1e-2, 16, a) + 1e2j * (b - 0.5),
        "steep": lambda a, b: -0.5 + 1j * logarithmic(0.1, 2e3, b),  # as those of HiPPO
    },
    tame=("minus one", "near", "ladder"),
    textures=("each", "constant"),
    kind="complex",
)

layer_signed_modes = Domain(
    summary="modes of a layer that grow or decay: Re −16 to 1, |Im| up to 2e3, at least 0.1 from 0",
    maps={
        "half": lambda a, b: -0.5 * np.ones_like(a) + 0j,
        "near": layer_modes.maps["near"],
        "ladder": layer_modes.maps["ladder"],
        "rising": lambda a, b: logarithmic(0.1, 1, a) + 10j * (b - 0.5),
        "wide": lambda a, b: -logarithmic(0.1, 16, a) + 1e2j * (b - 0.5),
        "steep": layer_modes.maps["steep"],
    },
    tame=("half", "near"),
    textures=("each", "constant"),
    kind="complex",
)

layer_decays = Domain(
    summary="constant decays of a layer: |a| of 1, e^(−rate) with rates 1e-4 to 10; any phase",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "slow": lambda a, b: np.exp(-logarithmic(1e-4, 0.1, a)) + 0j,
        "turning": lambda a, b: turn(np.exp(-logarithmic(1e-4, 0.3, a)), b),
        "wide": lambda a, b: turn(np.exp(-logarithmic(1e-4, 10, a)), b),
        "unit": lambda a, b: turn(np.ones_like(a), b),
    },
    tame=("one", "slow", "turning", "unit"),
    textures=("each", "constant"),
    kind="complex",
    exponent=True,
)

rate_weights = Domain(
    summary="weights of a rate e^w, log(1 + e^w) or 1/(w² + ½): 0, −3 to 3, −8 to 4; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: 6 * a - 3 + 0j,
        "wide": lambda a, b: 12 * a - 8 + 0j,
    },
    tame=("zero", "usual"),
    textures=("each", "constant"),
    kind="real",
)

layer_entries = replace(
    complex_entries,
    summary="entries of C of one input: magnitudes up to 4, and up to 32",
    kind="real",
)

ring_rates = Domain(
    summary="log(−log |a|) for decays a on a ring: rates of 1, of 1e-3 to 1, of 1e-4 to 10; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: np.log(logarithmic(1e-3, 1, a)) + 0j,
        "wide": lambda a, b: np.log(logarithmic(1e-4, 10, a)) + 0j,
    },
    tame=("zero", "usual"),
    textures=("each", "constant"),
    kind="real",
    exponent=True,
)

ring_phases = Domain(
    summary="logarithms of phases: of 1, of 1e-2 to 2π; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: np.log(logarithmic(1e-2, 2 * np.pi, a)) + 0j,
    },
    tame=("zero", "usual"),
    textures=("each", "constant"),
    kind="real",
    exponent=True,
)

ring_scales = Domain(
    summary="logarithms of input scales: 0 to −3; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: -3 * a + 0j,
    },
    tame=("zero", "usual"),
    textures=("each", "constant"),
    kind="real",
)

layer_states = Domain(
    summary="states of a layer: magnitudes up to 4; real",
    maps=ENTRIES,
    tame=("half", "normal", "uniform"),
    textures=("each", "gaps"),
    kind="real",
)

complex_states = replace(layer_states, summary="states of a layer: moduli up to 4", kind="complex")

feature_sums = Domain(
    summary="sums of positive features: ½, 0 to 4; real",
    maps={
        "half": lambda a, b: 0.5 * np.ones_like(a) + 0j,
        "uniform": lambda a, b: 4 * a + 0j,
    },
    tame=("half", "uniform"),
    textures=("each", "gaps"),
    kind="real",
)

score_biases = Domain(
    summary="scores that depend on a distance: 0, −1 to 1, −10 to 0; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "uniform": turn,
        "steep": lambda a, b: -10 * a + 0j,
    },
    tame=("zero", "uniform"),
    textures=("each", "constant"),
    kind="real",
)

cached_steps = Domain(
    summary="whether a place of a cache holds a step: 1, or 0 or 1; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "some": lambda a, b: np.round(a) + 0j,
    },
    tame=("one", "some"),
    textures=("each",),
    kind="real",
)

read_steps = replace(cached_steps, summary="whether a step reads another: 1, or 0 or 1; real")
