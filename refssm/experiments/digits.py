"""Every layer trained on scanned digits: curves of several seeds, with their spread.

All layers get the same small model, the same plan and the same seeds. No layer's settings are tuned
for it, so the figures show that each layer learns, not which one is best. Digits have no gaps, so
layers that read gaps are left out.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from refssm.experiments.systems import Table
from refssm.gallery.training import Curve, CurvePanel
from refssm.gallery.training import draw as drawn
from refssm.layers.catalog import LAYERS
from refssm.training.card import count
from refssm.training.loop import Plan
from refssm.training.setup import Setup

SEEDS, EVERY = 3, 25
PLAN = Plan(steps=300, batch=50, rate=8e-3, warm_up=30)
NAMES = [layer.name for layer in LAYERS if not layer.beside]
MODEL = {"h": 32, "depth": 2, "norm": "batch", "dropout": 0.1}


class TrainedLayer(NamedTuple):
    """One run: its layer and seed, its tests, its size and time."""

    layer: str
    seed: int
    parameters: int
    seconds: float
    tests: list[dict[str, Any]]  # step, loss of the batch, loss and accuracy on the test set


Result = list[TrainedLayer]


def in_turn(function: Callable, tasks: Iterable[tuple]) -> Iterator[Any]:
    """`function` for each task, one after the other."""
    return (function(*task) for task in tasks)


def measured(*, seed, quick=False, track=iter, each=in_turn) -> Result:
    """Train every layer with every seed; `each` may share the runs among processes."""
    seeds = range(seed, seed + (1 if quick else SEEDS))
    plan = replace(PLAN, steps=2 * EVERY, warm_up=5) if quick else PLAN
    tasks = [(name, s, plan) for name in NAMES for s in seeds]
    found = list(track(each(trained, tasks)))
    return sorted(found, key=lambda run: (NAMES.index(run.layer), run.seed))


def trained(layer: str, seed: int, plan: Plan) -> TrainedLayer:
    """One run in memory."""
    trainer = Setup("digits", layer, plan=replace(plan, seed=seed), **MODEL).trainer()
    state, began, tests = trainer.start(), time.perf_counter(), []
    while state.step < plan.steps:
        state, facts = trainer.step(state)
        if state.step % EVERY == 0 or state.step == plan.steps:
            tests.append({"step": state.step, "loss": facts["loss"], **trainer.test(state)})
    seconds = time.perf_counter() - began
    return TrainedLayer(layer, seed, count(state.parameters), seconds, tests)


def by_layer(result: Result) -> dict[str, list[TrainedLayer]]:
    """The runs of each layer."""
    return {
        name: [r for r in result if r.layer == name]
        for name in dict.fromkeys(r.layer for r in result)
    }


def tables(result: Result) -> list[Table]:
    """Test accuracy at the end: mean, standard deviation, least and largest."""
    rows = []
    for name, runs in by_layer(result).items():
        found = [100 * run.tests[-1]["test_accuracy"] for run in runs]
        deviation = f"± {stdev(found):.1f}" if len(found) > 1 else ""
        rows.append((
            name, str(runs[0].parameters), f"{mean(found):.1f} {deviation}".strip(),
            f"{min(found):.1f} to {max(found):.1f}",
            f"{mean(run.tests[-1]['test_loss'] for run in runs):.3f}",
        ))  # fmt: skip
    steps, seeds = result[0].tests[-1]["step"], len({run.seed for run in result})
    title = f"Digits, row by row, after {steps} steps; seeds: {seeds}"
    head = ("layer", "real numbers", "test accuracy, %", "range", "test loss")
    return [Table(title, head, rows)]


def draw(output: Path, result: Result) -> Path:
    """Loss and accuracy on the test set against steps: medians, and bands over the seeds."""
    panels = []
    for key, title, logarithmic in (
        ("test_loss", "loss on the test set", True),
        ("test_accuracy", "accuracy on the test set", False),
    ):
        curves = {
            name: Curve(
                [t["step"] for t in runs[0].tests], [[t[key] for t in r.tests] for r in runs]
            )
            for name, runs in by_layer(result).items()
        }
        panels.append(CurvePanel(title, curves, logarithmic))
    return drawn(output, panels)
