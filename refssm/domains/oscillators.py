"""Domains of oscillators: squares of frequencies, steps, states of velocities and positions."""

from dataclasses import replace

import numpy as np

from refssm.domains.domain import ALIKE, Domain
from refssm.domains.maps import logarithmic
from refssm.domains.signals import states

springs = Domain(
    summary="squares of frequencies: 0 to 1 as models start, 1, 0, 1e-6 to 1e4; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "usual": lambda a, b: 0.05 + 0.9 * a + 0j,
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "soft": lambda a, b: logarithmic(1e-6, 1e-2, a) + 0j,
        "wide": lambda a, b: logarithmic(1e-6, 1e4, a) + 0j,
        "stiff": lambda a, b: logarithmic(1e2, 1e4, a) + 0j,
    },
    tame=("one", "usual"),
    textures=("each", "constant", "gaps"),
    kind="real",
    exponent=True,
    structured=ALIKE,
)
soft_springs = replace(
    springs,
    summary="squares of frequencies: 0 to 1 as models start, 1, 0, 1e-6 to 4; real",
    maps={
        **{name: springs.maps[name] for name in ("one", "usual", "zero", "soft")},
        "stiff": lambda a, b: 2 + 1.9 * a + 0j,
        "edge": lambda a, b: 4 * np.ones_like(a) + 0j,  # with a step of 1 both eigenvalues are −1
    },
)
oscillator_steps = Domain(
    summary="steps of oscillators: 0 to 1 as after a logistic function, 1, 1/2, 0, 1e-4; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "usual": lambda a, b: 0.05 + 0.9 * a + 0j,
        "half": lambda a, b: 0.5 * np.ones_like(a) + 0j,
        "small": lambda a, b: logarithmic(1e-4, 1e-1, a) + 0j,
    },
    tame=("one", "usual", "half"),
    textures=("each", "constant", "gaps"),
    kind="real",
    exponent=True,
    structured=ALIKE,
)
oscillator_states = replace(
    states, summary="velocities and positions: moduli up to 1e2, exact integers"
)
