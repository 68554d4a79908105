"""Domains of mLSTM: input and forget gates as logarithms, and the scale of a state."""

from dataclasses import replace

import numpy as np

from refssm.domains.domain import ALIKE, Domain, Numbers
from refssm.domains.linear_attention import log_gates

forget_gates = replace(log_gates, finite=True)  # log_f + m − m' may be ∞ − ∞

exponential_gates = Domain(
    summary="logarithms of input gates: 0, ±1, −10 as xLSTM starts, ±15 as it caps, to ±85; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: 2 * a - 1 + 0j,
        "start": lambda a, b: a / 10 - 10 + 0j,
        "capped": lambda a, b: 30 * a - 15 + 0j,
        # above −88: below it e^{−i} overflows in single precision
        "wide": lambda a, b: 170 * a - 85 + 0j,
        "large": lambda a, b: 84 + a + 0j,  # a sum of some weights e^i overflows
        "rising": lambda a, b: np.where(a < 0.1, 200 * a, -5 * a) + 0j,  # few large ones
    },
    tame=("zero", "usual", "start"),
    textures=("each", "constant", "impulse", "gaps"),
    kind="real",
    finite=True,
    structured=ALIKE,
)

log_scales = Domain(
    summary="logarithms of the scale of a state: 0, ±15, ±85; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: 2 * a - 1 + 0j,
        "capped": lambda a, b: 30 * a - 15 + 0j,
        "wide": lambda a, b: 170 * a - 85 + 0j,
    },
    tame=("zero", "usual"),
    textures=("each", "constant"),
    kind="real",
    finite=True,
    structured=ALIKE,
)

denominators = Numbers(
    "a number that is added to the denominator in scaled units: 0", (0.0,), "a number >= 0", 0
)
