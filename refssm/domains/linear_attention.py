"""Domains of linear attention: keys of norm at most 1, queries, rates of writing, gates, states."""

from dataclasses import replace

import numpy as np

from refssm._numerics.triangular import unit_lower_inverse
from refssm.domains.conditions import (
    not_rising,
    not_rising_of_keys,
    products,
    short,
    short_for_chunks,
    unit_lower,
)
from refssm.domains.domain import ALIKE, NOTHING, WAVE_TEXTURES, Domain
from refssm.domains.maps import logarithmic, turn
from refssm.domains.recurrences import projections, real_signals
from refssm.domains.signals import signals

MOST = 1 - 2.0**-7  # the norm of keys that are rounded: in no type the roundings exceed 1


def unit_keys(k):
    """Scale each key whose norm is above 1, to 1 if it then has few digits, else to 1 − 2^-7.

    Keys ±1, ±½, ±¼, … of 1, 4, 16, … entries keep their norm of exactly 1 in every type. Rounding
    others to bfloat16 adds up to 2^-8 to their norm, and with β = 2 and the same key at all steps a
    norm above 1 lets the state grow exponentially.
    """
    size = np.sqrt((np.abs(k) ** 2).sum(-1, keepdims=True))
    positive = np.where(size > 0, size, 1)
    exact = np.log2(positive) % 1 == 0
    scaled = np.where(exact, k / positive, k / positive * MOST)
    return np.where(size > np.where(exact, 1, MOST), scaled, k)


keys = Domain(
    summary="keys of norm at most 1: any, the same at all steps, one entry, short, 0",
    maps={
        "equal": lambda a, b: np.ones_like(a) + 0j,
        "normal": signals.maps["normal"],
        "sparse": lambda a, b: np.where(a < 0.2, turn(np.ones_like(a), b), 0),
        "positive": lambda a, b: 0.01 + a + 0j,  # as after a SiLU: all of them overlap
        "short": lambda a, b: turn(0.3 * a, b),
        "magnitudes": lambda a, b: turn(logarithmic(1e-6, 1, a), b),
        "zero": lambda a, b: np.zeros_like(a) + 0j,
    },
    tame=("equal", "normal", "positive"),
    textures=WAVE_TEXTURES,
    kind="real",
    fit=unit_keys,
    holds=short,
)

removed_keys = replace(
    keys,
    summary="what a step reads, of norm at most 1: any, the same at all steps, one entry, short, 0",
    decay=True,  # reads the state
)

removals = Domain(
    summary="each entry of a times one of 0 to −1: −1, 0, the same for all keys, 1e-6 to 1",
    maps={
        "one": lambda a, b: -np.ones_like(a) + 0j,
        "usual": lambda a, b: -1 / (1 + np.exp(4 - 8 * a)) + 0j,
        "any": lambda a, b: -a + 0j,
        "corners": lambda a, b: -np.round(a) + 0j,
        "small": lambda a, b: -logarithmic(1e-6, 1e-1, a) + 0j,
        "zero": lambda a, b: np.zeros_like(a) + 0j,
    },
    tame=("one", "usual", "any"),
    textures=("each", "constant", "gaps"),
    kind="real",
    decay=True,  # multiplies what is read of the state
    follows="a",
    entry_by_entry=True,
)

queries = replace(
    projections, summary="queries: moduli 1e-6 to 1e3, exact integers, real", kind="real"
)

betas = Domain(
    summary="rates of writing: 0 to 2, often 0, 1 and 2, as after a logistic function; real",
    maps={
        "one": lambda a, b: np.ones_like(a) + 0j,
        "usual": lambda a, b: a + 0j,
        "two": lambda a, b: 2 * np.ones_like(a) + 0j,
        "any": lambda a, b: 2 * a + 0j,
        "corners": lambda a, b: np.round(2 * a) + 0j,
        "small": lambda a, b: logarithmic(1e-6, 1e-1, a) + 0j,
        "zero": lambda a, b: np.zeros_like(a) + 0j,
    },
    tame=("one", "usual", "two"),
    textures=("each", "constant", "gaps"),
    kind="real",
    structured=ALIKE,
)

log_gates = Domain(
    summary="logarithms of gates: 0, 0 every other step, −1e-4, to −1e3 a step, one of −1e4; real",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "slow": lambda a, b: -logarithmic(1e-4, 0.1, a) + 0j,
        "lasting": lambda a, b: -1e-4 * np.ones_like(a) + 0j,
        "half": lambda a, b: np.where(a < 0.5, 0, -logarithmic(1e-3, 10, a)) + 0j,
        "wide": lambda a, b: -logarithmic(1e-5, 1e3, a) + 0j,
        "cliff": lambda a, b: np.where(a < 0.05, -1e4, -logarithmic(1e-4, 0.1, a)) + 0j,
    },
    tame=("zero", "slow", "lasting"),
    textures=("each", "constant", "impulse", "gaps"),
    kind="real",
    decay=True,
    structured={"close": ("alike",), "strong": ("lowered",)},
)

gate_logits = Domain(
    summary="gates before the logistic function: 0, 9 (a gate of 1 − 1e-4), 10 to 20, −85 to 10",
    maps={
        "zero": lambda a, b: np.zeros_like(a) + 0j,
        "lasting": lambda a, b: 9 * np.ones_like(a) + 0j,
        "usual": lambda a, b: 8 * a - 4 + 0j,
        "slow": lambda a, b: 2 + 8 * a + 0j,
        "saturated": lambda a, b: 10 + 10 * a + 0j,
        # above −85: below it 1/(1 + e^{−z}) overflows in single precision
        "wide": lambda a, b: 95 * a - 85 + 0j,
    },
    tame=("lasting", "usual", "slow"),
    textures=("each", "constant", "gaps"),
    kind="real",
    decay=True,
    structured=ALIKE,
)


def _summed_steps(log_g):
    """The sums of a chunk's gates, time last."""
    return np.cumsum(log_g, axis=-1)


def _summed_of_keys(log_g):
    """The same, time before keys."""
    return np.cumsum(log_g, axis=-2)


gate_sums = replace(
    log_gates,
    summary="running sums of such logarithms of gates: at most 0 and not increasing; real",
    fit=_summed_steps,
    holds=not_rising,
    decay=False,  # all steps but the first have sums, too, and each pair of steps a difference
    structured=NOTHING,
)
gate_sums_of_keys = replace(gate_sums, fit=_summed_of_keys, holds=not_rising_of_keys)


def products_from_keys(x):
    """L_ij = β_i k_i·k_j below the diagonal, for keys that are rows of x and β_i = 2|x_ii| ≤ 2."""
    k, diagonal = unit_keys(x), np.abs(np.einsum("...ii->...i", x))
    rates = 2 * np.minimum(diagonal, 1)
    return np.tril(rates[..., None] * (k @ np.swapaxes(k, -1, -2)), -1)


products_of_keys = replace(
    keys,
    summary="β_i k_i·k_j below the diagonal, of keys of norm at most 1 and rates to 2; real",
    fit=products_from_keys,
    holds=products,
)
inverses_of_chunks = replace(
    products_of_keys,
    summary="(I + L)⁻¹ of such L: 1 on the diagonal, 0 above it, moduli to 2; real",
    fit=lambda x: unit_lower_inverse(products_from_keys(x)),
    holds=unit_lower,
)


def short_rows(w):
    """Rows of m chunks of l steps, each of norm at most 1/(l m).

    One chunk multiplies S by e^{G_end} I − Σ_i e^{G_end − G_i} k_i w_iᵀ. With ‖k_i‖ ≤ 1 its norm is
    at most 1 + Σ_i ‖w_i‖ ≤ 1 + 1/m, whatever the keys are, and that of all chunks at most e.
    """
    m, l = w.shape[-3:-1]
    return unit_keys(w) / max(m * l, 1)


writes_of_states = replace(
    keys,
    summary="rows of norm at most 1/(l m): any, the same at all steps, one entry, short, 0",
    fit=short_rows,
    holds=short_for_chunks,
)

values_of_chunks = replace(
    real_signals,
    summary="what a chunk writes to a state of zeros: as values; real",
    finite=True,  # U − W S, or (e^{G_end} I − K̃ᵀ W) S: an infinity in U meets others or not
)
