"""Tones at half of the sampling rate, without training again.

A system in continuous time hears the same sound at 8 kHz if its steps are twice as long
(`resampled(2)`). Trained models hear the test set at 16 kHz, then each second sample of it, with
the steps of training and with doubled ones. A discrete system has no steps to double.
"""

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

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
from refssm.layers.model import part, under
from refssm.training.loop import Plan, Trainer
from refssm.training.setup import Setup
from refssm.training.tasks import TASKS

CLAIM = Claim(
    "a model in continuous time keeps its accuracy at half of the sampling rate if its steps are "
    "doubled, and loses it if they are not",
    "smith2023s5",
)
LENGTH = 512
PLAN = Plan(steps=500, batch=32, rate=8e-3, warm_up=50)
MODEL = {"h": 32, "depth": 2, "norm": "batch", "dropout": 0.0}
LAYERS = ("s5", "s4d")
WAYS = ("16 kHz", "8 kHz, doubled steps", "8 kHz, the same steps")
KEPT = 10  # points of accuracy within which it counts as kept


class Heard(NamedTuple):
    """One trained model, and its accuracies in each of the ways, in percent."""

    layer: str
    run: TrainedRun
    accuracy: dict[str, float]


def trials(*, quick: bool = False) -> list[PlannedRun]:
    """Each layer on tones at 16 kHz."""
    plan, l = of_length(PLAN, quick), 256 if quick else LENGTH
    how = {"plan": plan, "task_sizes": {"l": l}, **MODEL}
    return [PlannedRun(layer, Setup("tones", layer, **how)) for layer in LAYERS]


def measured(runs: Sequence[TrainedRun]) -> list[Heard]:
    """The accuracies of each run at both rates."""
    return [Heard(run.name, run, _accuracies(run)) for run in runs]


def _accuracies(run: TrainedRun) -> dict[str, float]:
    trainer, state = restored(run)
    assert run.setup is not None
    half = TASKS["tones"](l=run.setup.task_sizes["l"], every=2)
    slower = {**state.parameters, **_doubled(trainer, state.parameters)}
    given = (trainer.task, state.parameters), (half, slower), (half, state.parameters)
    found = {}
    for way, (task, parameters) in zip(WAYS, given, strict=True):
        y = trainer.model.forward(trainer.ops, parameters, task.test.signals, state.averages)
        found[way] = 100 * float((y.argmax(-1) == task.test_labels).mean())
    return found


def _doubled(trainer: Trainer, parameters) -> dict:
    """The parameters of all layers for samples twice as far apart."""
    model, found = trainer.model, {}
    for i in range(model.depth):
        prefix = f"blocks.{i}.layer."
        layer = model.layer.kind(**part(parameters, prefix)).resampled(2)
        found |= under(prefix, layer.arrays())
    return found


def tables(result: Sequence[Heard]) -> list[Table]:
    """Accuracy in each of the ways."""
    rows = [
        (layer, *(spread(_of(result, layer, way)) for way in WAYS)) for layer in _layers(result)
    ]
    return [Table("Tones, chance 10, by the spectrum 100: accuracy in %", ("layer", *WAYS), rows)]


def _layers(result: Sequence[Heard]) -> list[str]:
    return list(dict.fromkeys(heard.layer for heard in result))


def _of(result: Sequence[Heard], layer: str, way: str) -> list[float]:
    return [heard.accuracy[way] for heard in result if heard.layer == layer]


def findings(result: Sequence[Heard]) -> list[Finding]:
    """Kept with doubled steps, and ahead of the same steps."""
    found = []
    for layer in _layers(result):
        full, doubled, same = (_of(result, layer, way) for way in WAYS)
        kept = mean(full) - mean(doubled) <= KEPT
        told = f"{layer} {'keeps' if kept else 'loses'} its accuracy with doubled steps: "
        found.append(Finding(kept, f"{told}{mean(full):.1f} % at 16 kHz, {mean(doubled):.1f} %"))
        held = ahead(doubled, same)
        verb = "are ahead of" if held else "are not ahead of"
        told = f"{layer} at 8 kHz: doubled steps ({mean(doubled):.1f} %) {verb} the same steps"
        found.append(Finding(held, f"{told} ({mean(same):.1f} %)"))
    return found


def draw(output, result: Sequence[Heard]):
    """A dot for each model, in each of the ways."""
    with styled():
        made, axes = figure(1, 1, (6.0, 3.4))
        for i, layer in enumerate(_layers(result)):
            for j, way in enumerate(WAYS):
                values = _of(result, layer, way)
                label = layer if j == 0 else None
                axes[0, 0].plot([j + i / 10] * len(values), values, "o", color=f"C{i}", label=label)
        axes[0, 0].set_xticks(range(len(WAYS)), WAYS)
        axes[0, 0].set_ylabel("accuracy, %")
        axes[0, 0].set_ylim(0, 105)
        axes[0, 0].legend(frameon=False)
        return written(made, output)
