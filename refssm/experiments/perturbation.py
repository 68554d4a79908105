"""How far transfer functions move if their parameters move, compared with the theory's bounds.

Every parameter moves by at most Δ: a hundredth of the distance of the nearest pole from the
imaginary axis for poles, a hundredth for residues and Markov parameters. The results are divided by
the bound: the largest of some random changes, a change of one parameter, and the same change of all
parameters (poles: towards the axis). A change of a pole has the larger effect the nearer the pole
is to the axis; changes of Markov parameters have the same effect in every system.
"""

from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from refssm.bounds import (
    markov_perturbation_bound,
    pole_perturbation_bound,
    residue_perturbation_bound,
)
from refssm.experiments import systems
from refssm.experiments.systems import Table, told
from refssm.gallery.drawing import figure, styled, written

FRACTION = 0.01
AROUND = np.tan(np.linspace(-1.5, 1.5, 15))  # nodes by a pole, in its distance from the axis
ZOOM = 16  # nodes on the unit circle per Markov parameter
DIAGONAL = {
    "S4D-Lin": systems.s4d_lin,
    "S4D-Lin, slower": systems.slower,
    "S4D-Inv": systems.s4d_inv,
    "random, on a line": systems.line,
    "random, in the disc": systems.disc,
    "equal poles": systems.equal,
}
NAMES = (*DIAGONAL, "HOPE")


class Moved(NamedTuple):
    """Results for one system and one kind of change: Δ, the bound, and the effects of changes."""

    name: str
    what: str  # poles, residues, Markov parameters
    n: int
    delta: float
    norm: float  # ‖G‖∞
    bound: float
    random: float
    one: float
    all: float


def measured(*, seed, quick=False, track=iter) -> list[Moved]:
    """Every system, size and kind of change."""
    sizes, draws = ((4, 16), 4) if quick else ((4, 16, 64, 256), 16)
    results = []
    for name, n in track([*product(NAMES, sizes)]):
        rng = np.random.default_rng([seed, n, NAMES.index(name)])
        if name == "HOPE":
            results.append(markov(rng, n, draws))
        else:
            system = DIAGONAL[name](rng, n)
            results += [poles(name, system, rng, draws), residues(name, system, rng, draws)]
    return results


def poles(name, system, rng, draws) -> Moved:
    """Move poles: at random, the most harmful one, all towards the axis."""
    w, v = system
    n, delta, s = len(w), FRACTION * np.abs(w.real).min(), _nodes(w)

    def reached(moved):  # v/(s − w − δ) − v/(s − w), without cancellation
        apart = s[:, None] - w
        return _largest((v * moved / (apart * (apart - moved))).sum(-1))

    harm = np.abs(v) / (np.abs(w.real) * (np.abs(w.real) - delta))
    one = delta * (np.arange(n) == harm.argmax())
    random = max(reached(delta * _phases(rng, n)) for _ in range(draws))
    bound = pole_perturbation_bound(w, v, np.ones(n), delta)
    found = (random, reached(one), reached(np.full(n, delta)))
    return Moved(name, "poles", n, delta, _largest(_transfer(system, s)), float(bound), *found)


def residues(name, system, rng, draws) -> Moved:
    """Move residues: at random, the one of the pole nearest to the axis, all equally."""
    w = system.w
    n, delta, s = len(w), FRACTION, _nodes(w)

    def reached(moved):
        return _largest(_transfer(systems.Diagonal(w, moved), s))

    one = delta * (np.arange(n) == np.abs(w.real).argmin())
    random = max(reached(delta * _phases(rng, n)) for _ in range(draws))
    bound = residue_perturbation_bound(w, delta)
    found = (random, reached(one), reached(np.full(n, delta)))
    return Moved(name, "residues", n, delta, _largest(_transfer(system, s)), float(bound), *found)


def markov(rng, n, draws) -> Moved:
    """Move Markov parameters: at random, the first, all equally; the bound is for all equally.

    The parameters themselves do not matter, and neither does dt: G̃ − G = Σ_j Δh_j z'^{−(j+1)}.
    """

    def reached(h):
        return _largest(np.fft.fft(h, ZOOM * n))

    random = max(reached(FRACTION * _phases(rng, n)) for _ in range(draws))
    one, alike = FRACTION * (np.arange(n) == 0), np.full(n, FRACTION)
    norm, bound = reached(rng.standard_normal(n)), float(markov_perturbation_bound(alike))
    found = (random, reached(one), reached(alike))
    return Moved("HOPE", "Markov parameters", n, FRACTION, norm, bound, *found)


def _largest(values) -> float:
    """The largest modulus over the nodes, so never more than ‖·‖∞."""
    return float(np.abs(values).max())


def _transfer(system, s):
    return (system.v / (s[:, None] - system.w)).sum(-1)


def _nodes(w):
    """Nodes on the imaginary axis: each Im w, and points near it."""
    return 1j * (w.imag[:, None] + np.abs(w.real[:, None]) * AROUND).ravel()


def _phases(rng, n):
    """n random numbers of modulus 1."""
    return np.exp(2j * np.pi * rng.random(n))


def tables(result: list[Moved]) -> list[Table]:
    """Effects of changes over the bound, for the largest size; and the growth of the bounds."""
    sizes = sorted({m.n for m in result})
    rows = [
        (
            m.name,
            m.what,
            told(m.norm),
            told(m.bound / m.delta),
            *(told(x / m.bound) for x in m[-3:]),
        )
        for m in result
        if m.n == sizes[-1]
    ]
    columns = (
        "",
        "moved",
        "‖G‖∞",
        "bound / Δ",
        "random / bound",
        "one / bound",
        "all alike / bound",
    )
    growth = [
        (
            name,
            what,
            *(told(m.random / m.delta) for m in result if (m.name, m.what) == (name, what)),
        )
        for name, what in dict.fromkeys((m.name, m.what) for m in result)
    ]
    return [
        Table(f"‖G̃ − G‖∞, n = {sizes[-1]}; one parameter always reaches 1/n", columns, rows),
        Table("‖G̃ − G‖∞ / Δ, random changes", ("", "moved", *(f"n = {n}" for n in sizes)), growth),
    ]


def draw(output: Path, result: list[Moved]) -> Path:
    """Effects of random changes against n; bounds are dashed."""
    with styled():
        made, axes = figure(1, 2, (8.0, 4.0))
        for axis, what in zip(axes[0], ("poles", "residues"), strict=True):
            shown = (what, "Markov parameters")
            names = dict.fromkeys(m.name for m in result)
            for i, name in enumerate(names):
                of = [m for m in result if m.name == name and m.what in shown]
                n = [m.n for m in of]
                axis.loglog(n, [m.random / m.delta for m in of], f"C{i}.-", label=name)
                axis.loglog(n, [m.bound / m.delta for m in of], f"C{i}--", linewidth=0.8)
            axis.set_xscale("log", base=2)
            axis.set_title(f"{what} moved; of HOPE, h")
            axis.set_xlabel("n")
        axes[0, 0].set_ylabel("‖G̃ − G‖∞ / Δ; dashed: the bounds")
        axes[0, 0].legend(frameon=False)
        return written(made, output)
