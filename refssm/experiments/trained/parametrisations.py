"""Four ways to write a long filter: size, memory of a step, gradients, accuracy on digits.

HOPE has Markov parameters and a step, S4D poles, C and a step, StableSSM rates that cannot grow,
Spectral SSM matrices behind fixed filters. Sizes are counted for 64 channels with 64 states each,
the others measured on models of 32 channels. The norm of the gradient is that of the group
`system`, or of the matrices where there is none, relative to the norm of its parameters.
"""

from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

import numpy as np

from refssm.experiments.claims import Claim, Finding
from refssm.experiments.digits import MODEL, PLAN
from refssm.experiments.systems import Table
from refssm.experiments.trained.trials import (
    PlannedRun,
    TrainedRun,
    of_length,
    restored,
    spread,
)
from refssm.gallery.drawing import figure, styled, written
from refssm.layers.catalog import NAMED
from refssm.training.card import count
from refssm.training.loop import Trainer, TrainingState
from refssm.training.setup import Setup

CLAIM = Claim(
    "the systems of 64 channels with 64 states have 4160 parameters in HOPE, 8256 in S4D",
    "yu2024hope",
)
LAYERS = ("hope", "s4d", "stable_ssm_best", "spectral_ssm")
SYSTEM = {  # what makes the filters
    "hope": ("log_dt", "markov"),
    "s4d": ("log_dt", "log_rate", "frequency", "C"),
    "stable_ssm_best": None,
    "spectral_ssm": ("M_plus", "M_minus"),
}
CHANNELS = 64
WANTED = {"hope": 4160, "s4d": 8256}


class Written(NamedTuple):
    """One run: relative norms of the gradient at the start and at the end."""

    layer: str
    run: TrainedRun
    start: float
    end: float


def trials(*, quick: bool = False) -> list[PlannedRun]:
    """Each layer on digits."""
    plan = of_length(PLAN, quick)
    return [PlannedRun(layer, Setup("digits", layer, plan=plan, **MODEL)) for layer in LAYERS]


def of_filters(layer: str, names) -> list[str]:
    """Those of these parameters that make the filters of a layer."""
    own = SYSTEM[layer]
    if own is None:
        groups = NAMED[layer].kind.groups()
        own = [n for n in names if groups[n] == "system"] + ["C"]
    return [n for n in names if n in own]


def sizes(layer: str) -> tuple[int, int]:
    """Real numbers of the filters' parameters, and of a state, for 64 channels."""
    kind, h = NAMED[layer], CHANNELS
    p = kind.init(np.random.default_rng(0), h=h, **kind.sizes)
    arrays = p.arrays()
    state = kind.rest(p)
    return count({n: arrays[n] for n in of_filters(layer, arrays)}), count(
        {str(i): s for i, s in enumerate(state)}
    )


def measured(runs: Sequence[TrainedRun]) -> list[Written]:
    """The gradients of each run at its ends."""
    found = []
    for run in runs:
        trainer, state = restored(run)
        ends = [_gradient(run.name, trainer, s) for s in (trainer.start(), state)]
        found.append(Written(run.name, run, *ends))
    return found


def _gradient(layer: str, trainer: Trainer, state: TrainingState) -> float:
    """‖gradient‖/‖parameters‖ of the filters, for the first batch after the state."""
    given = trainer.task.batch(np.random.default_rng(0), trainer.plan.batch)
    _, _, gradients, _ = trainer.gradients(state, given, None)
    names = [n for n in gradients if ".layer." in n]
    own = of_filters(layer, [n.rpartition(".")[2] for n in names if n.startswith("blocks.0.")])
    names = [n for n in names if n.rpartition(".")[2] in own]
    norms = [
        np.sqrt(sum(float((np.abs(a[n]) ** 2).sum()) for n in names))
        for a in (gradients, state.parameters)
    ]
    return float(norms[0] / norms[1])


def _layers(result: Sequence[Written]) -> dict[str, list[Written]]:
    return {layer: [r for r in result if r.layer == layer] for layer in LAYERS}


def tables(result: Sequence[Written]) -> list[Table]:
    """Size, state, gradients and accuracy."""
    rows = []
    for layer, its in _layers(result).items():
        parameters, state = sizes(layer)
        accuracy = spread([100 * r.run.last() for r in its])
        ends = (f"{mean(getattr(r, end) for r in its):.1e}" for end in ("start", "end"))
        rows.append((layer, str(parameters), str(state), *ends, accuracy))
    head = ("layer", "parameters", "state", "gradient at the start", "at the end", "digits, %")
    return [Table("Filters of 64 channels; digits, chance 10", head, rows)]


def findings(_: Sequence[Written]) -> list[Finding]:
    """The published counts; norms of gradients are told in the table."""
    return [
        Finding(sizes(layer)[0] == wanted, f"{layer} has {sizes(layer)[0]} parameters")
        for layer, wanted in WANTED.items()
    ]


def draw(output, result: Sequence[Written]):
    """Relative gradients at both ends, a line for each run."""
    with styled():
        made, axes = figure(1, 1, (5.6, 3.6))
        for i, (layer, its) in enumerate(_layers(result).items()):
            for j, r in enumerate(its):
                label = layer if j == 0 else None
                axes[0, 0].semilogy([0, 1], [r.start, r.end], "o-", color=f"C{i}", label=label)
        axes[0, 0].set_xticks([0, 1], ["start", "end of training"])
        axes[0, 0].set_ylabel("‖gradient‖ / ‖parameters‖ of the filters")
        axes[0, 0].legend(frameon=False)
        return written(made, output)
