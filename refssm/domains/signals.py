"""Domains of signals, of time-varying decays, and of states."""

from dataclasses import replace

import numpy as np

from refssm.domains.conditions import bounded
from refssm.domains.domain import SIGNAL_TEXTURES, WAVE_TEXTURES, Domain
from refssm.domains.maps import compass, logarithmic, products_bounded, turn

decays = Domain(
    summary="discrete decays: e^(−rate), rates 1e-5 to 1e2, any phase, 0, |a| = 1 and beyond",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "slow": lambda a, b: np.exp(-logarithmic(1e-4, 0.1, a)) + 0j,
        "turning": lambda a, b: turn(np.exp(-logarithmic(1e-4, 0.3, a)), b),
        "moderate": lambda a, b: turn(np.exp(-logarithmic(0.05, 0.3, a)), b),
        "wide": lambda a, b: turn(np.exp(-logarithmic(1e-5, 1e2, a)), b),
        "steep": lambda a, b: turn(np.exp(-logarithmic(5, 1e2, a)), b),
        "unit": lambda a, b: turn(np.ones_like(a), b),
        "near 0": lambda a, b: turn(np.exp(-logarithmic(1e-5, 0.1, a)), 1e-3 * b),
        "near pi": lambda a, b: turn(np.exp(-logarithmic(1e-5, 0.1, a)), 0.5 + 1e-3 * b),
        "growing": lambda a, b: turn(np.exp(logarithmic(1e-3, 2, a)), b),
        "compass": compass,
    },
    tame=("one", "slow", "turning", "unit"),
    textures=("each", "constant", "channel", "gaps", "subnormal"),
    fit=products_bounded,
    holds=bounded,
    span=True,
    decay=True,
    structured={"close": ("alike",), "strong": ("decayed",)},
)

signals = Domain(
    summary="any signal: magnitudes 1e-6 to 1e3 per channel, constant, exact integers, impulses",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "normal": lambda a, b: turn(np.sqrt(-2 * np.log1p(-0.999 * a)), b),
        "positive": lambda a, b: 0.5 + a + 0j,
        "integer": lambda a, b: np.round(16 * a - 8) + 1j * np.round(16 * b - 8),
        "magnitudes": lambda a, b: turn(logarithmic(1e-6, 1e3, a), b),
    },
    tame=("one", "normal", "positive"),
    textures=SIGNAL_TEXTURES,
    structured={"strong": ("first",)},
)

waveforms = Domain(
    summary="any signal without subnormal numbers, which a transform turns into rounding errors",
    maps=signals.maps,
    tame=signals.tame,
    textures=WAVE_TEXTURES,
)

impulse_responses = Domain(
    summary="kernels: flat, decaying to 1e-30 of their first entry, any signal",
    maps=signals.maps,
    tame=signals.tame,
    textures=("each", "constant", "fading", "channel", "impulse", "late", "gaps"),
)

taps = Domain(
    summary="taps: magnitudes 1e-6 to 1e3, constant, exact integers, one of them",
    maps=signals.maps,
    tame=signals.tame,
    textures=WAVE_TEXTURES,
    padded=True,
)

real_taps = replace(
    taps,
    summary="taps, always real: magnitudes 1e-6 to 1e3, constant, exact integers, one of them",
    kind="real",
)

channel_biases = Domain(
    summary="a bias for each channel: 0, −½ to ½ as PyTorch starts, −30 to 30; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "usual": lambda a, b: a - 0.5 + 0j,
        "wide": lambda a, b: 60 * a - 30 + 0j,
    },
    tame=("zero", "usual"),
    kind="real",
)

states = Domain(
    summary="initial states: moduli up to 1e2, exact integers",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "normal": lambda a, b: turn(np.sqrt(-2 * np.log1p(-0.999 * a)), b),
        "integer": lambda a, b: np.round(16 * a - 8) + 1j * np.round(16 * b - 8),
        "large": lambda a, b: turn(100 * a, b),
    },
    tame=("one", "normal"),
    textures=("each", "gaps", "subnormal"),
)
