"""Hankel singular values of each channel before and after training, and what training gives.

The task is a delay by 64 steps, for which the systems must change. In `frozen` runs only what
surrounds the systems is trained. A channel of HOPE has n Markov parameters, one of S4D n/2 modes;
counted are the singular values above 1 % of the largest, as a share of n.
"""

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

import numpy as np

import refssm
from refssm.experiments import systems
from refssm.experiments.claims import Claim, Finding
from refssm.experiments.systems import Table
from refssm.experiments.trained.trials import (
    PlannedRun,
    TrainedRun,
    ahead,
    of_length,
    restored,
    spread,
)
from refssm.gallery.drawing import figure, styled, written
from refssm.layers.model import part
from refssm.training.loop import Plan
from refssm.training.setup import Setup

CLAIM = Claim(
    "systems of HOPE start and end with more Hankel singular values that count than those of S4D, "
    "and training the systems lowers the error",
    "yu2024hope",
)
EPS = 1e-2
PLAN = Plan(steps=400, batch=16, rate=8e-3, warm_up=40)
MODEL = {"h": 16, "depth": 2, "norm": "layer", "dropout": 0.0}
MODELS = {
    "HOPE": ("hope", {}),
    "S4D, random poles": ("s4d", {"poles": "random"}),
    "S4D-Lin": ("s4d", {}),
}
KINDS = ("trained", "frozen")


class Ranked(NamedTuple):
    """One run, and the spectra of its channels (channels, n), descending, before and after."""

    name: str
    run: TrainedRun
    before: np.ndarray
    after: np.ndarray


def trials(*, quick: bool = False) -> list[PlannedRun]:
    """Each start, with and without training of its systems."""
    plan = of_length(PLAN, quick)
    return [
        PlannedRun(
            f"{name}, {kind}",
            Setup("delay", layer, plan=plan, start=start | _frozen(kind), **MODEL),
        )
        for name, (layer, start) in MODELS.items()
        for kind in KINDS
    ]


def _frozen(kind: str) -> dict[str, str]:
    return {"frozen": "system"} if kind == "frozen" else {}


def measured(runs: Sequence[TrainedRun]) -> list[Ranked]:
    """The spectra at the start and at the end of each run."""
    found = []
    for run in runs:
        trainer, state = restored(run)
        ends = [
            np.concatenate([
                spectra(trainer.model.layer.name, part(p, f"blocks.{i}.layer."))
                for i in range(trainer.model.depth)
            ])
            for p in (trainer.start().parameters, state.parameters)
        ]  # fmt: skip
        found.append(Ranked(run.name, run, *ends))
    return found


def spectra(layer: str, p) -> np.ndarray:
    """The Hankel singular values of each channel of a layer of HOPE or S4D."""
    if layer == "hope":
        return np.stack([systems.markov_singular_values(h.astype(float)) for h in p["markov"]])
    w = (-np.exp(p["log_rate"]) + 1j * p["frequency"]).astype(complex)
    n, found = 2 * w.shape[-1], []
    for poles, C in zip(w, p["C"].astype(complex), strict=True):
        sigma = systems.singular_values(systems.pairs(poles, C))[:n]
        found.append(np.pad(sigma, (0, n - len(sigma))))
    return np.stack(found)


def shares(sigma: np.ndarray) -> float:
    """The mean share of singular values that count, in percent."""
    return 100 * float(refssm.numerical_rank(sigma, EPS).mean()) / sigma.shape[-1]


def _groups(result: Sequence[Ranked]) -> dict[str, list[Ranked]]:
    names = dict.fromkeys(r.name for r in result)
    return {name: [r for r in result if r.name == name] for name in names}


def tables(result: Sequence[Ranked]) -> list[Table]:
    """Shares before and after, and the error."""
    rows = [
        (name, spread([shares(r.before) for r in its]), spread([shares(r.after) for r in its]),
         spread([r.run.last("test_error") for r in its], 3))
        for name, its in _groups(result).items()
    ]  # fmt: skip
    head = ("model", "before, %", "after, %", "test error (0 is best, 1 is the answer 0)")
    title = "Hankel singular values above 0.01 σ₁, share of n; delay by 64 steps"
    return [Table(title, head, rows)]


def findings(result: Sequence[Ranked]) -> list[Finding]:
    """HOPE against S4D before and after; trained against frozen."""
    groups, found = _groups(result), []
    for end in ("before", "after"):
        hope, *others = (
            [shares(getattr(r, end)) for r in groups[f"{name}, trained"]] for name in MODELS
        )
        for name, other in zip([*MODELS][1:], others, strict=True):
            told = f"{end} training {mean(hope):.1f} % of HOPE's singular values count, of those of"
            found.append(Finding(ahead(hope, other), f"{told} {name} {mean(other):.1f} %"))
    for name in MODELS:
        x, y = ([-r.run.last("test_error") for r in groups[f"{name}, {k}"]] for k in KINDS)
        held = ahead(x, y)
        verb = "lowers" if held else "does not lower"
        told = f"training the systems of {name} {verb} the error: {-mean(x):.3f}, frozen"
        found.append(Finding(held, f"{told} {-mean(y):.3f}"))
    return found


def draw(output, result: Sequence[Ranked]):
    """The median spectrum of each model, relative to its largest, before and after."""
    with styled():
        made, axes = figure(1, len(MODELS), (3.6 * len(MODELS), 3.4), sharey=True)
        for axis, name in zip(axes[0], MODELS, strict=True):
            its = [r for r in result if r.name == f"{name}, trained"]
            for end, style in (("before", "--"), ("after", "-")):
                sigma = np.concatenate([getattr(r, end) for r in its])
                relative = np.median(sigma / sigma[:, :1], 0)
                axis.semilogy(np.arange(1, len(relative) + 1), relative, style, label=end)
            axis.axhline(EPS, color="0.7", linewidth=0.8)
            axis.set_title(name)
            axis.set_xlabel("number of the singular value")
            axis.set_ylim(1e-8, 2)
        axes[0, 0].set_ylabel("σ / σ₁, median of the channels")
        axes[0, 0].legend(frameon=False)
        return written(made, output)
