"""How many Hankel singular values matter: #{σ_i > ε σ_1} against the number of parameters.

For diagonal systems with poles from one fixed distribution, this number grows slower than n: two
poles near each other have almost the same exponential. Independent random Markov parameters give a
Hankel matrix whose rank grows like n, and HOPE's warp does not change its singular values, for any
`dt`. S4D-Lin is not random: its poles spread as fast as n grows.
"""

from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

import refssm
from refssm.experiments import systems
from refssm.experiments.systems import Table, told
from refssm.gallery.drawing import figure, styled, written

EPS = 1e-2
DIAGONAL = {
    "random, in the disc": systems.disc,
    "random, on a line": systems.line,
    "S4D-Lin": systems.s4d_lin,
}
NAMES = (*DIAGONAL, "HOPE")


class Ranks(NamedTuple):
    """Ranks (sizes, draws) by name of the system."""

    sizes: tuple[int, ...]
    ranks: dict[str, np.ndarray]


def measured(*, seed, quick=False, track=iter) -> Ranks:
    """The ranks of every system, size and draw."""
    sizes, draws = ((8, 16, 32, 64), 3) if quick else ((16, 32, 64, 128, 256, 512), 9)
    ranks = {name: np.zeros((len(sizes), draws), int) for name in NAMES}
    for size, draw in track([*product(range(len(sizes)), range(draws))]):
        rng = np.random.default_rng([seed, size, draw])
        for name in NAMES:
            ranks[name][size, draw] = refssm.numerical_rank(_spectrum(name, rng, sizes[size]), EPS)
    return Ranks(sizes, ranks)


def _spectrum(name, rng, n):
    """Hankel singular values of one draw."""
    if name in DIAGONAL:
        return systems.singular_values(DIAGONAL[name](rng, n))
    return systems.markov_singular_values(rng.standard_normal(n))


def exponent(result: Ranks, name: str) -> float:
    """The exponent γ of rank ≈ c n^γ, by least squares on the mean logarithms."""
    logarithms = np.log(result.ranks[name]).mean(-1)
    return float(np.polyfit(np.log(result.sizes), logarithms, 1)[0])


def tables(result: Ranks) -> list[Table]:
    """Mean ranks by n, and the exponents."""
    rows = [
        (name, *(told(r) for r in result.ranks[name].mean(-1)), f"{exponent(result, name):.2f}")
        for name in NAMES
    ]
    draws = result.ranks[NAMES[0]].shape[-1]
    title = f"Hankel singular values above {EPS:g} σ₁, mean of {draws} draws"
    return [Table(title, ("n =", *map(str, result.sizes), "exponent"), rows)]


def draw(output: Path, result: Ranks) -> Path:
    """Ranks against n; each draw is a dot."""
    with styled():
        made, axes = figure(1, 1, (7.0, 4.5))
        for i, name in enumerate(NAMES):
            ranks = result.ranks[name]
            label = f"{name}: exponent {exponent(result, name):.2f}"
            line = np.exp(np.log(ranks).mean(-1))
            axes[0, 0].loglog(result.sizes, line, color=f"C{i}", label=label)
            for each in ranks.T:
                axes[0, 0].loglog(result.sizes, each, ".", color=f"C{i}", markersize=3)
        axes[0, 0].set_xscale("log", base=2)
        axes[0, 0].set_xlabel("n, the number of poles or of Markov parameters")
        axes[0, 0].set_ylabel(f"Hankel singular values above {EPS:g} σ₁")
        axes[0, 0].legend(frameon=False)
        return written(made, output)
