"""Noise on poles and on Markov parameters: how far Hankel singular values move, and the factor n.

Every parameter moves by the same Δ, poles in random directions, Markov parameters up or down. By
Weyl and Nehari no singular value moves by more than ‖G̃ − G‖∞, so the bounds on transfer functions
are bounds on these, too. A pole with the residue v moves them by up to |v| Δ/|Re w|², a Markov
parameter by Δ, whatever HOPE's step. "S4D-Lin, slower" has a memory a hundred times as long; Δ is a
fifth of the distance of its poles from the axis. Changes are compared in units of Δ, and relative
to σ₁, which differs from system to system. A value counts as changed if it moves by a tenth of
itself; values below 1e-10 σ₁ are left out.

Both bounds have a factor n. It is no artefact of the proofs: equal poles that move towards the axis
together reach the whole bound for every n, and so do Markov parameters that all grow by Δ. Random
changes add up to about √n.
"""

from itertools import product
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np

from refssm.bounds import markov_perturbation_bound, pole_perturbation_bound
from refssm.experiments import perturbation, systems
from refssm.experiments.claims import Claim, Finding
from refssm.experiments.perturbation import Moved
from refssm.experiments.systems import Table, told
from refssm.experiments.trained.trials import ahead, spread
from refssm.gallery.drawing import figure, styled, written

CLAIM = Claim(
    "noise on the poles moves the Hankel singular values of a diagonal system, noise on Markov "
    "parameters hardly those of HOPE; the bounds of both grow like n, and are reached",
    "yu2024hope",
)
DELTA = 1e-3
LEAST = 1e-10  # of σ₁: smaller values are left out of the count
DIAGONAL = {
    "S4D-Lin": systems.s4d_lin,
    "S4D-Lin, slower": systems.slower,
    "S4D-Inv": systems.s4d_inv,
    "random, on a line": systems.line,
}
NAMES = (*DIAGONAL, "HOPE")


class Noisy(NamedTuple):
    """One draw: σ₁, the largest change of a value, its bound, and the share that has changed."""

    first: float
    change: float
    bound: float
    share: float


class NoiseEffects(NamedTuple):
    """Draws by (name, n), and the systems that reach their bounds."""

    sizes: tuple[int, ...]
    noisy: dict[tuple[str, int], list[Noisy]]
    worst: list[Moved]


def measured(*, seed, quick=False, track=iter) -> NoiseEffects:
    """Every system and size with noise; then the worst systems for the bounds."""
    sizes, draws = ((4, 16), 4) if quick else ((4, 16, 64, 256), 9)
    noisy, worst = {}, []
    for name, n in track([*product(NAMES, sizes)]):
        seeds = ([seed, n, NAMES.index(name), k] for k in range(draws))
        noisy[name, n] = [one(name, np.random.default_rng(s), n) for s in seeds]
    for n in sizes:
        rng, equal = np.random.default_rng([seed, n]), systems.equal(None, n)
        worst += [
            perturbation.poles("equal poles", equal, rng, draws),
            perturbation.residues("equal poles", equal, rng, draws),
            perturbation.markov(rng, n, draws),
        ]
    return NoiseEffects(sizes, noisy, worst)


def one(name, rng, n) -> Noisy:
    """The values of one system before and after the noise."""
    if name == "HOPE":
        h, moved = rng.standard_normal(n), DELTA * rng.choice([-1.0, 1.0], n)
        before, after = (systems.markov_singular_values(x) for x in (h, h + moved))
        bound = markov_perturbation_bound(moved)
    else:
        w, v = DIAGONAL[name](rng, n)
        moved = DELTA * np.exp(2j * np.pi * rng.random(n))
        pairs = (systems.Diagonal(x, v) for x in (w, w + moved))
        before, after = (_padded(systems.singular_values(pair), n) for pair in pairs)
        bound = pole_perturbation_bound(w, v, np.ones(n), DELTA)
    counted = before > LEAST * before[0]
    changed = np.abs(after - before) > before / 10
    share = changed[counted].mean()
    return Noisy(float(before[0]), float(np.abs(after - before).max()), float(bound), float(share))


def _padded(sigma, n):
    """n values: those that a factor without digits has left out are 0."""
    return np.pad(sigma, (0, n - len(sigma)))


def tables(result: NoiseEffects) -> list[Table]:
    """The effects of noise at the largest size; effects over Δ of the worst changes, by n."""
    n, rows = result.sizes[-1], []
    for name in NAMES:
        runs = result.noisy[name, n]
        rows.append((
            name, told(mean(r.first for r in runs)),
            spread([r.change / DELTA for r in runs], 2),
            f"{mean(r.change / r.first for r in runs):.1e}",
            told(mean(r.change / r.bound for r in runs)),
            f"{100 * mean(r.share for r in runs):.1f}",
        ))  # fmt: skip
    columns = (
        "", "σ₁", "max |σ̃ − σ| / Δ ± deviation (range)", "/ σ₁", "/ bound", "changed, %",
    )  # fmt: skip
    draws = len(result.noisy["HOPE", n])
    title = f"Hankel singular values after noise of Δ = {DELTA:g}, n = {n}, {draws} draws"
    found = [Table(title, columns, rows)]
    rows = []
    for name, what in _worst(result):
        of = [m for m in result.worst if (m.name, m.what) == (name, what)]
        for kind, values in (("alike", [m.all for m in of]), ("random", [m.random for m in of])):
            over = [value / m.delta for value, m in zip(values, of, strict=True)]
            share = told(values[-1] / of[-1].bound)
            power = f"{_power(result.sizes, over):.2f}"
            rows.append((f"{name}, {what}", kind, *(told(x) for x in over), power, share))
    columns = ("", "moved", *(f"n = {n}" for n in result.sizes), "exponent", "/ bound")
    return [*found, Table("‖G̃ − G‖∞ / Δ of the worst systems", columns, rows)]


def _worst(result: NoiseEffects) -> list[tuple[str, str]]:
    return [*dict.fromkeys((m.name, m.what) for m in result.worst)]


def _power(sizes, values) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def findings(result: NoiseEffects) -> list[Finding]:
    """Each diagonal system beside HOPE; the bound on values; the factor n."""
    n, found = result.sizes[-1], []
    hope = result.noisy["HOPE", n]
    for name in DIAGONAL:
        runs = result.noisy[name, n]
        over, its = ([r.change / DELTA for r in of] for of in (runs, hope))
        sentence = f"values of {name} move by {told(mean(over))} Δ, of HOPE by {told(mean(its))} Δ"
        found.append(Finding(ahead(over, its), sentence))
        over, its = ([r.change / r.first for r in of] for of in (runs, hope))
        of_both = f"by {mean(over):.1e} σ₁, of HOPE by {mean(its):.1e} σ₁"
        found.append(Finding(ahead(over, its), f"values of {name} move {of_both}"))
    most = max(r.change / r.bound for runs in result.noisy.values() for r in runs)
    sentence = f"no value moves by more than its bound: at most by {most:.4g} of it"
    found.append(Finding(most <= 1, sentence))
    for name, what in _worst(result):
        of = [m for m in result.worst if (m.name, m.what) == (name, what)]
        power = _power(result.sizes, [m.all / m.delta for m in of])
        # errors of n complex quotients and of their sum, as in the quotient itself
        reached = all(m.all >= m.bound * (1 - 4 * (m.n + 8) * 2.0**-53) for m in of)
        least = told(min(m.all / m.bound for m in of))
        sentence = f"{name}, {what} moved alike: n^{power:.2f}, {least} of the bound for every n"
        found.append(Finding(reached, sentence))
    return found


def draw(output: Path, result: NoiseEffects) -> Path:
    """Changes of singular values against n; and the worst changes of transfer functions."""
    with styled():
        made, axes = figure(1, 2, (8.0, 4.0))
        for i, name in enumerate(NAMES):
            runs = [result.noisy[name, n] for n in result.sizes]
            means = [mean(r.change for r in of) / DELTA for of in runs]
            axes[0, 0].loglog(result.sizes, means, f"C{i}.-", label=name)
            for n, of in zip(result.sizes, runs, strict=True):
                axes[0, 0].loglog([n] * len(of), [r.change / DELTA for r in of], f"C{i}.", ms=3)
        for i, (name, what) in enumerate(_worst(result)):
            of = [m for m in result.worst if (m.name, m.what) == (name, what)]
            n, label = [m.n for m in of], f"{name}, {what}"
            axes[0, 1].loglog(n, [m.all / m.delta for m in of], f"C{i}.-", label=label)
            axes[0, 1].loglog(n, [m.random / m.delta for m in of], f"C{i}.--")
        axes[0, 0].set_title("max |σ̃ − σ| / Δ, with noise")
        axes[0, 1].set_title("‖G̃ − G‖∞ / Δ: moved alike; dashed: at random")
        for axis in axes[0]:
            axis.set_xscale("log", base=2)
            axis.set_xlabel("n")
            axis.legend(frameon=False)
        return written(made, output)
