"""Induction and associative recall: which layers find what followed a symbol before.

A diagonal system mixes steps by weights that do not depend on the symbols. To look something up
the weights must depend on them: by products of a query and keys (attention, H3, delta rules), or by
gates that the input sets (Mamba). All models have two layers of the same width and the same plan.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from refssm.experiments.claims import Claim, Finding
from refssm.experiments.systems import Table
from refssm.experiments.trained import orders
from refssm.experiments.trained.trials import (
    PlannedRun,
    TrainedRun,
    by_name,
    curve,
    of_length,
    spread,
)
from refssm.gallery.training import draw as drawn
from refssm.gallery.training import of_groups
from refssm.layers.catalog import NAMED
from refssm.training.loop import Plan
from refssm.training.setup import Setup
from refssm.training.tasks import TASKS

CLAIM = Claim(
    "attention solves induction and associative recall; S4D and GSS do not, H3 does; so do "
    "selective scans and delta rules",
    "fu2023h3",
)
SOLVES = ("attention", "h3", "mamba", "gated_deltanet")
FAILS = ("s4d", "gss")
KINDS = (("induction", "induction_head"), ("recall", "associative_recall"))
SOLVED = 0.9  # accuracy from which a task counts as solved
PLAN = Plan(steps=800, batch=50, rate=5e-3, warm_up=50)
MODEL = {"h": 32, "depth": 2, "norm": "layer", "dropout": 0.0}


def trials(*, quick: bool = False) -> list[PlannedRun]:
    """Each layer on both tasks."""
    plan = of_length(PLAN, quick)
    return [
        PlannedRun(f"{layer} {told}", Setup(task, layer, plan=plan, **MODEL))
        for told, task in KINDS
        for layer in (*SOLVES, *FAILS)
    ]


def tables(result: Sequence[TrainedRun]) -> list[Table]:
    """Accuracy of the last test, beside chance."""
    groups, found = by_name(result), []
    for told, task in KINDS:
        rows = [
            (layer, spread([100 * r.last() for r in groups[f"{layer} {told}"]]),
             str(groups[f"{layer} {told}"][0].parameters))
            for layer in (*SOLVES, *FAILS)
        ]  # fmt: skip
        chance = f"{100 * TASKS[task]().marks['chance']:.1f}"
        title = f"{task}: test accuracy in %, chance {chance}, the best possible 100"
        found.append(Table(title, ("layer", "mean ± deviation (range)", "real numbers"), rows))
    return found


def findings(result: Sequence[TrainedRun]) -> list[Finding]:
    """Whether each layer solves each task as was said."""
    groups, found = by_name(result), []
    for told, _ in KINDS:
        accuracy = {n: mean(r.last() for r in groups[f"{n} {told}"]) for n in NAMED if
                    f"{n} {told}" in groups}  # fmt: skip
        for layers, solves in ((SOLVES, True), (FAILS, False)):
            for layer in layers:
                held = (accuracy[layer] >= SOLVED) == solves
                what = "solves" if accuracy[layer] >= SOLVED else "does not solve"
                found.append(Finding(held, f"{layer} {what} {told}: {100 * accuracy[layer]:.1f} %"))
    return found


def draw(output: Path, result: Sequence[TrainedRun]) -> Path:
    """Accuracy against steps, a panel for each task."""
    panels = []
    for told, _ in KINDS:
        groups = {
            name.removesuffix(f" {told}"): runs
            for name, runs in by_name(result).items()
            if name.endswith(told)
        }
        panels += [p._replace(title=f"{told}: {p.title}") for p in of_groups(groups, curve)[1:]]
    return drawn(output, panels)


measured = orders.unchanged
