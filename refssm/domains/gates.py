"""Domains of gated units: gates between 0 and 1, rates before a softplus, gates before a logistic
function, candidates."""

from dataclasses import replace

import numpy as np

from refssm.domains.domain import ALIKE, Domain
from refssm.domains.maps import logarithmic, turn
from refssm.domains.recurrences import preactivations

recurrence_gates = Domain(
    summary="gates of the decay, after a logistic function: 1e-6 to 1, often 1 and 1e-4; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "usual": lambda a, b: 0.05 + 0.9 * a + 0j,
        "lasting": lambda a, b: 1e-4 * np.ones_like(a) + 0j,
        "small": lambda a, b: logarithmic(1e-6, 1e-2, a) + 0j,
        "half": lambda a, b: np.where(a < 0.5, 1e-6, 0.1 + 0.9 * a) + 0j,
        "cliff": lambda a, b: np.where(a < 0.1, 1, logarithmic(1e-6, 1e-3, a)) + 0j,
    },
    tame=("one", "usual"),
    textures=("each", "constant"),  # never 0, where the root has an infinite slope
    kind="real",
    structured=ALIKE,
)

input_gates = Domain(
    summary="gates of the input, after a logistic function: 0 to 1, often 0 and 1, 1e-6; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "usual": lambda a, b: 0.05 + 0.9 * a + 0j,
        "corners": lambda a, b: np.round(a) + 0j,
        "small": lambda a, b: logarithmic(1e-6, 1e-1, a) + 0j,
    },
    tame=("one", "usual"),
    textures=("each", "constant", "gaps"),
    kind="real",
    structured=ALIKE,
)

rate_logits = replace(
    preactivations,
    summary="rates before a softplus: −7 to −2 as models start, 0, −30 to 100; real",
    tame=("usual",),  # at 0 and gates of 1 the products of decays underflow
)

update_logits = Domain(
    summary="update gates before the logistic function: 0, −9, −4 to 4, −20 to 20, −85 to 85; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: 8 * a - 4 + 0j,
        "lasting": lambda a, b: -9 * np.ones_like(a) + 0j,
        "slow": lambda a, b: -2 - 8 * a + 0j,
        "open": lambda a, b: 10 + 10 * a + 0j,
        "cliff": lambda a, b: np.where(a < 0.1, 20, -4 - 10 * a) + 0j,
        # within ±85: beyond it 1/(1 + e^{±k}) overflows in single precision
        "wide": lambda a, b: 170 * a - 85 + 0j,
    },
    tame=("lasting", "usual", "slow"),
    textures=("each", "constant", "gaps"),
    kind="real",
    structured=ALIKE,
)

candidates = Domain(
    summary="candidates before g: moduli 1e-6 to 1e2, either sign, −20 to −1, never 0; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "usual": lambda a, b: turn(0.01 + 3 * a, b),
        "negative": lambda a, b: -1 - 19 * a + 0j,
        "positive": lambda a, b: 0.5 + a + 0j,
        "small": lambda a, b: turn(logarithmic(1e-6, 1e-2, a), b),
        "magnitudes": lambda a, b: turn(logarithmic(1e-6, 80, a), b),
        "large": lambda a, b: logarithmic(1, 1e3, a) + 0j,
    },
    tame=("one", "usual", "positive"),
    textures=("each", "constant"),  # not 0, where g has a corner
    kind="real",
    structured=ALIKE,
)
