"""How fast ranks grow if poles are drawn near the circle: P(1 − |a| ≤ r) = r^α, α = ½, 1, 2, 4.

Discrete poles a have uniform angles, residues are normal with mean |v|² = 1. The number of Hankel
singular values above ε is fitted by c n^γ. The power 1/(1 + α) follows from a count: n r^α poles
are within r of the circle, and poles at a distance of about r share 1/r regions, in each of which
all exponentials are nearly the same. At r = n^(−1/(1+α)) there are as many poles as regions. A
region has about log(1/(εr)) values above ε, not one: σ is 1/(2r) for one pole, and each further
pole costs a factor. So the balance is n r^(1+α) = log(1/(εr)), and over sizes that can be computed
the exponent is above 1/(1 + α), without a contradiction to a bound for large n; the table has it
as "with the logarithm". This count is ours, not the paper's.

An absolute ε and one relative to σ₁ do not count the same: σ₁ belongs to the pole nearest to the
circle, at a distance of about n^(−1/α), and grows like n^(1/α). With ε σ₁ fewest values count where
most poles are near the circle. LRU's ring between the radii 0.9 and 0.999 is the part of the disc,
α = 1, that has a tenth of its poles: it has the rank of about ten times as many poles in the disc.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from refssm.experiments import systems
from refssm.experiments.claims import Claim, Finding
from refssm.experiments.systems import Table, told
from refssm.experiments.trained.trials import ahead, spread
from refssm.gallery.drawing import figure, styled, written

CLAIM = Claim(
    "with poles drawn so that P(1 − |a| ≤ r) is like r^α, the number of Hankel singular values "
    "above ε grows at most like n^(1/(1+α))",
    "yu2024hope",
)
EPS = 1e-2
ALPHAS = (0.5, 1.0, 2.0, 4.0)
LAWS = {f"α = {alpha:g}": alpha for alpha in ALPHAS}
RING = "LRU's ring"
MAKERS: dict[str, Callable] = {
    **{name: partial(systems.radial, alpha=alpha) for name, alpha in LAWS.items()},
    RING: systems.ring,
}
KINDS = ("absolute", "relative")


class Growths(NamedTuple):
    """Ranks (sizes, draws) by name and kind of ε."""

    sizes: tuple[int, ...]
    ranks: dict[tuple[str, str], np.ndarray]


def measured(*, seed, quick=False, track=iter) -> Growths:
    """The ranks of every law, size and draw, by both kinds of ε."""
    sizes = (16, 32, 64, 128) if quick else (64, 128, 256, 512, 1024, 2048)
    draws = 4 if quick else 9
    ranks: dict[tuple[str, str], np.ndarray] = {
        key: np.zeros((len(sizes), draws), int) for key in product(MAKERS, KINDS)
    }
    for size, draw in track([*product(range(len(sizes)), range(draws))]):
        for name, make in MAKERS.items():
            rng = np.random.default_rng([seed, size, draw])
            sigma = systems.singular_values(make(rng, sizes[size]))
            ranks[name, "absolute"][size, draw] = (sigma > EPS).sum()
            ranks[name, "relative"][size, draw] = (sigma > EPS * sigma[0]).sum()
    return Growths(sizes, ranks)


def exponents(result: Growths, name: str, kind: str) -> list[float]:
    """The exponent of each draw: least squares on the logarithms of its ranks."""
    logarithms = np.log(result.ranks[name, kind])
    return [float(np.polyfit(np.log(result.sizes), of_one, 1)[0]) for of_one in logarithms.T]


def with_logarithm(sizes: tuple[int, ...], alpha: float) -> float:
    """The exponent of n r^α over these sizes, with n r^(1+α) = log(1/(EPS r))."""

    def log_radius(n):  # the logarithms of both sides, with x = log r
        return brentq(lambda x: np.log(n) + (1 + alpha) * x - np.log(-np.log(EPS) - x), -1e3, 0)

    logarithms = np.log(np.array(sizes, float))
    ranks = logarithms + alpha * np.array([log_radius(float(n)) for n in sizes])
    return float(np.polyfit(logarithms, ranks, 1)[0])


def said(alpha: float) -> float:
    """1/(1 + α)."""
    return 1 / (1 + alpha)


def tables(result: Growths) -> list[Table]:
    """Mean ranks by n, exponents with their spread over the draws, and what was said of them."""
    found, draws = [], result.ranks[RING, KINDS[0]].shape[-1]
    for kind, above in zip(KINDS, (f"{EPS:g}", f"{EPS:g} σ₁"), strict=True):
        rows = []
        for name in MAKERS:
            alpha = LAWS.get(name)
            law = ("", "") if alpha is None else (said(alpha), with_logarithm(result.sizes, alpha))
            predicted = (x if isinstance(x, str) else f"{x:.2f}" for x in law)
            counts = (told(r) for r in result.ranks[name, kind].mean(-1))
            rows.append((name, *counts, spread(exponents(result, name, kind), 2), *predicted))
        title = f"Hankel singular values above {above}, mean of {draws} draws"
        told_of = ("exponent ± deviation (range)", "1/(1 + α)", "with the logarithm")
        found.append(Table(title, ("n =", *map(str, result.sizes), *told_of), rows))
    return found


def findings(result: Growths) -> list[Finding]:
    """Each exponent beside the theorem's, their order, and what a relative ε and a ring show."""
    found, by_kind = [], {}
    for kind in KINDS:
        by_kind[kind] = {name: exponents(result, name, kind) for name in LAWS}
    for name, alpha in LAWS.items():
        of_draws = by_kind["absolute"][name]
        error = stdev(of_draws) / len(of_draws) ** 0.5
        sentence = (
            f"{name}, absolute ε: n^{mean(of_draws):.2f} with a standard error of {error:.2f}; "
            f"said n^{said(alpha):.2f}, with the logarithm n^"
            f"{with_logarithm(result.sizes, alpha):.2f}"
        )
        found.append(Finding(mean(of_draws) - 2 * error <= said(alpha), sentence))
    for kind in KINDS:
        values = by_kind[kind]
        falls = all(ahead(values[a], values[b]) for a, b in pairwise(LAWS))
        powers = ", ".join(f"{mean(v):.2f}" for v in values.values())
        found.append(Finding(falls, f"exponents fall as α grows, {kind} ε: {powers}"))
    return [*found, _of_the_ring(result)]


def _of_the_ring(result: Growths) -> Finding:
    """Poles of LRU's ring beside as many of the disc, α = 1, and beside about ten times as many."""
    ring, disc = (result.ranks[name, "absolute"][0].tolist() for name in (RING, "α = 1"))
    more = 3  # eight times the first size
    of_more = result.ranks["α = 1", "absolute"][more].mean()
    sentence = (
        f"n = {result.sizes[0]}: {mean(ring):.1f} values count for LRU's ring, {mean(disc):.1f} "
        f"for α = 1, for which {of_more:.1f} count of n = {result.sizes[more]}"
    )
    return Finding(ahead(ring, disc), sentence)


def draw(output: Path, result: Growths) -> Path:
    """Ranks against n, a panel for each kind of ε; dashed: n^(1/(1+α)) from the first size."""
    with styled():
        made, axes = figure(1, 2, (8.0, 4.0))
        n = np.array(result.sizes)
        for axis, kind in zip(axes[0], KINDS, strict=True):
            for i, name in enumerate(MAKERS):
                ranks = np.exp(np.log(result.ranks[name, kind]).mean(-1))
                axis.loglog(n, ranks, f"C{i}.-", label=name)
                if name in LAWS and kind == "absolute":
                    power = ranks[0] * (n / n[0]) ** said(LAWS[name])
                    axis.loglog(n, power, f"C{i}--", linewidth=0.8)
            axis.set_xscale("log", base=2)
            axis.set_title(f"{kind} ε = {EPS:g}" + (" σ₁" if kind == "relative" else ""))
            axis.set_xlabel("n poles")
        axes[0, 0].set_ylabel("Hankel singular values above ε; dashed: 1/(1 + α)")
        axes[0, 1].legend(frameon=False)
        return written(made, output)
