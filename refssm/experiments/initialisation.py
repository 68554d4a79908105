"""Hankel singular values at the start of training: LegS, S4D-Lin, S4D-Inv, random poles, HOPE.

Each has n states, or as many Markov parameters, B of ones (LegS: its own B) and random C; diagonal
systems store n/2 modes for n states. The result is how many singular values are not small relative
to the first: a system with few of them is near a system with few states.
"""

from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

import refssm
from refssm.experiments import systems
from refssm.experiments.claims import Claim, Finding
from refssm.experiments.systems import Table, told
from refssm.experiments.trained.trials import ahead
from refssm.gallery.drawing import figure, styled, written

CLAIM = Claim(
    "at the start, a diagonal system with random poles has few Hankel singular values that count; "
    "those of HiPPO and of HOPE have many",
    "yu2024hope",
)
RANDOM = "random, in the disc"
NAMES = ("LegS", "LegS, normal part", "S4D-Lin", "S4D-Inv", RANDOM, "HOPE")
RANKS = (1e-1, 1e-2, 1e-4)
COUNTED = 1e-2  # of σ₁, for the sentences
NOISE = 1e-15  # relative to σ₁: smaller values have no correct digits in double precision


class Spectra(NamedTuple):
    """Hankel singular values (draws, n) by name, descending."""

    n: int
    sigma: dict[str, np.ndarray]


def measured(*, seed, quick=False, track=iter) -> Spectra:
    """The spectra of every system and draw."""
    n, draws = (16, 4) if quick else (64, 32)
    sigma = {name: np.zeros((draws, n)) for name in NAMES}
    for name, draw in track([*product(NAMES, range(draws))]):
        rng = np.random.default_rng([seed, NAMES.index(name), draw])
        found = spectrum(name, rng, n)
        sigma[name][draw, : len(found)] = found
    return Spectra(n, sigma)


def spectrum(name, rng, n) -> np.ndarray:
    """The spectrum of one draw."""
    if name == "HOPE":
        return systems.markov_singular_values(rng.standard_normal(n))
    if name == "LegS":
        return refssm.hankel_singular_values(*refssm.hippo_legs(n=n), rng.standard_normal(n))
    if name == "LegS, normal part":
        w, _, B, V = refssm.nplr_legs(n=n)
        return systems.singular_values(systems.Diagonal(w, B * (rng.standard_normal(n) @ V)))
    makers = {"S4D-Lin": systems.s4d_lin, "S4D-Inv": systems.s4d_inv}
    make = makers.get(name, systems.disc)
    return systems.singular_values(systems.pairs(*make(rng, n // 2)))


def tables(result: Spectra) -> list[Table]:
    """Medians over the draws of σ₁ and of two ratios to it; numbers of values above thresholds."""
    n, rows = result.n, []
    for name, sigma in result.sigma.items():
        first, middle, last = np.median(
            np.stack([sigma[:, 0], sigma[:, n // 2 - 1] / sigma[:, 0], sigma[:, -1] / sigma[:, 0]]),
            axis=-1,
        )
        ranks = [refssm.numerical_rank(sigma, eps).mean() for eps in RANKS]
        rows.append(
            (
                name,
                told(first),
                *(told(s, NOISE) for s in (middle, last)),
                *(told(r) for r in ranks),
            )
        )
    counted = (f"> {eps:g} σ₁" for eps in RANKS)
    columns = ("", "σ₁", f"σ_{n // 2}/σ₁", f"σ_{n}/σ₁", *counted)
    draws = len(result.sigma["HOPE"])
    return [Table(f"Hankel singular values at the start, n = {n}, {draws} draws", columns, rows)]


def findings(result: Spectra) -> list[Finding]:
    """How many values count for each system, beside random poles."""
    ranks = {
        name: refssm.numerical_rank(sigma, COUNTED).tolist() for name, sigma in result.sigma.items()
    }
    of_random, found = ranks.pop(RANDOM), []
    for name, counts in ranks.items():
        sentence = (
            f"{name}: {np.mean(counts):.1f} of {result.n} are above {COUNTED:g} σ₁, with random "
            f"poles {np.mean(of_random):.1f}"
        )
        found.append(Finding(ahead(counts, of_random), sentence))
    return found


def draw(output: Path, result: Spectra) -> Path:
    """One histogram of log σ/σ₁ per system, one below the other."""
    bins = np.linspace(-16, 0, 65)
    with styled():
        made, axes = figure(len(NAMES), 1, (7.0, 8.0))
        for axis, (name, sigma) in zip(axes[:, 0], result.sigma.items(), strict=True):
            relative = np.maximum(sigma / sigma[:, :1], 1e-16)
            axis.hist(np.log10(relative).ravel(), bins=bins, weights=_each(sigma), color="C0")
            axis.set_title(name, loc="left")
            axis.set_xlim(-16, 0)
        axes[-1, 0].set_xlabel("log₁₀ σ/σ₁; at −16: no digits in double precision")
        axes[0, 0].set_ylabel("how many")
        return written(made, output)


def _each(sigma):
    """Weights that make counts per system, not over all draws."""
    return np.full(sigma.size, 1 / len(sigma))
