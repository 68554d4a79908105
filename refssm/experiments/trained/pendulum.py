"""A pendulum at irregular times: does a layer that is given the gaps follow it better?

`s5_irregular` makes a step of each length; `s5` and `rnn` see the same pictures without the gaps.
The published models have a network of convolutions before the layer and are trained a hundred times
as long.
"""

from collections.abc import Sequence

from refssm.experiments.claims import Claim, Finding
from refssm.experiments.systems import Table
from refssm.experiments.trained import orders
from refssm.experiments.trained.trials import PlannedRun, TrainedRun, of_length
from refssm.training.loop import Plan
from refssm.training.setup import Setup

CLAIM = Claim(
    "S5 with the gaps between samples has a smaller error than S5 without them, and both than a "
    "recurrent network",
    "smith2023s5",
)
PLAN = Plan(steps=600, batch=16)
MODEL = {"h": 32, "depth": 2, "norm": "layer", "dropout": 0.0}
MODELS = {"S5 with gaps": "s5_irregular", "S5 without gaps": "s5", "RNN": "rnn"}


def trials(*, quick: bool = False) -> list[PlannedRun]:
    """The three models."""
    plan = of_length(PLAN, quick)
    return [
        PlannedRun(name, Setup("pendulum", layer, plan=plan, **MODEL))
        for name, layer in MODELS.items()
    ]


def tables(result: Sequence[TrainedRun]) -> list[Table]:
    """The error of each model; that of the mean answer, and of each picture read alone."""
    title = "Pendulum, the mean answer 0.905, each picture alone 0.666"
    return [orders.errors(title, result)]


def findings(result: Sequence[TrainedRun]) -> list[Finding]:
    """The order of the errors."""
    return orders.in_order_of_errors(result, *MODELS)


measured, draw = orders.unchanged, orders.curves
