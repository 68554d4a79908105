"""Domains of norms of features: vectors, weights, the number under the root, groups of channels."""

import numpy as np

from refssm.domains.domain import WAVE_TEXTURES, Counts, Domain, Numbers
from refssm.domains.maps import logarithmic, turn
from refssm.domains.signals import signals

features = Domain(
    summary="vectors: magnitudes 1e-6 to 1e3, tiny ones from 1e-20, large ones to 1e9, zeros; real",
    maps={
        "one": signals.maps["one"],
        "normal": signals.maps["normal"],
        "positive": signals.maps["positive"],
        "magnitudes": signals.maps["magnitudes"],
        "near the root": lambda a, b: turn(logarithmic(1e-5, 1e-1, a), b),  # x² is about ε
        "tiny": lambda a, b: turn(logarithmic(1e-20, 1e-6, a), b),
        "large": lambda a, b: turn(logarithmic(1e3, 1e9, a), b),
    },
    tame=("one", "normal", "positive"),
    textures=WAVE_TEXTURES,
    kind="real",
)

norm_weights = Domain(
    summary="weights of a norm: 1, −2 to 2, magnitudes 1e-3 to 1e2; real",
    maps={
        "one": signals.maps["one"],
        "normal": signals.maps["normal"],
        "uniform": lambda a, b: turn(2 * a, b),
        "magnitudes": lambda a, b: turn(logarithmic(1e-3, 1e2, a), b),
    },
    tame=("one", "normal", "uniform"),
    textures=("each", "constant", "gaps"),
    kind="real",
)

# Published code has 1e-5, 1e-6 and 1e-12. The first has all digits, so that a program is seen that
# rounds it to 16 bits; no type rounds the others
floors = Numbers(
    "numbers under the root: 1e-5, 2^-40 to 1",
    (1e-5, 2.0**-20, 2.0**-10, 1.0, 2.0**-40),
    "a number >= 0",
    0,
    np.finfo(float).max,
)

channel_groups = Counts(
    "channels of a group: 1 to 128, or all",
    (64, 16, 3, 1, 2, 5, 4, 32, 128),
    "an integer >= 1 that divides n, or None",
    divides="n",
)
