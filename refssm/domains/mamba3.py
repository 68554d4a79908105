"""Domains of Mamba-3: rates of turning before the tanh, the weights of a trapezoid, and phases."""

from dataclasses import replace

import numpy as np

from refssm.domains.domain import ALIKE, Domain
from refssm.domains.linear_attention import keys, log_gates, queries
from refssm.domains.maps import logarithmic, turn
from refssm.domains.recurrences import logits, real_signals, step_sizes

turning_rates = Domain(
    summary="rates of turning before the tanh: 0, ±1, all of one sign, 1e-6 to 1e-1, ±20; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: 2 * a - 1 + 0j,
        "one way": lambda a, b: 0.5 + a + 0j,  # phases of many turns
        "back": lambda a, b: -0.1 - a + 0j,
        "small": lambda a, b: turn(logarithmic(1e-6, 1e-1, a), b),
        "saturated": lambda a, b: turn(3 + 17 * a, b),
    },
    tame=("zero", "usual", "one way"),
    textures=("each", "constant", "gaps"),
    kind="real",
    structured=ALIKE,
)

phases = Domain(
    summary="angles of a state: 0, 0 to 2π, −π to π, beside 2π; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "turn": lambda a, b: 6.28 * a + 0j,
        "either sign": lambda a, b: 6.28 * a - 3.14 + 0j,
        "nearly whole": lambda a, b: 6.28 + 0.003 * a + 0j,
    },
    tame=("zero", "turn"),
    textures=("each", "constant"),
    kind="real",
    structured=ALIKE,
)

# Each turned number is a sum of two, and so is an input: one infinity meets another or a 0,
# as the program adds them.
turned_queries = replace(queries, finite=True)
turned_keys = replace(keys, finite=True)
values = replace(real_signals, finite=True)
trapezoids = replace(
    logits,
    summary="the weight of a step's own input before the logistic function: 0, −20 to 20; real",
    textures=("each", "constant", "gaps"),
)
steps_of_phases = replace(step_sizes, finite=True)  # an infinite angle has no sine
decays_of_steps = replace(log_gates, finite=True)  # an infinity times a weight of 0
