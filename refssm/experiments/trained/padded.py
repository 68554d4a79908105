"""Digits that are followed by noise: what is known must be kept until the end.

Each layer reads a digit row by row, then noise, and answers at the last step. The free convolution
has one tap for each step, so it can remember, but nothing tells it what. Models are small and the
digits have 64 pixels, not 784: a free filter of so few taps is learnt in 300 steps, and no layer
gets more. The order of a paper whose models are trained for hours need not show here.
"""

from collections.abc import Sequence

from refssm.experiments.claims import Claim, Finding
from refssm.experiments.digits import MODEL, PLAN
from refssm.experiments.systems import Table
from refssm.experiments.trained import orders
from refssm.experiments.trained.trials import PlannedRun, TrainedRun, of_length
from refssm.training.setup import Setup

CLAIM = Claim(
    "behind noise HOPE remembers a digit better than S4D, and S4D better than a free convolution",
    "yu2024hope",
)
NOISES = (64, 192)
LAYERS = ("hope", "s4d", "long_convolution")
PIXELS = 64


def trials(*, quick: bool = False) -> list[PlannedRun]:
    """Each layer behind each length of noise."""
    plan = of_length(PLAN, quick)
    return [
        PlannedRun(
            f"{layer}, noise {noise}",
            Setup(
                "padded_digits", layer, plan=plan, task_sizes={"noise": noise}, **MODEL,
                sizes={"t": PIXELS + noise} if layer == "long_convolution" else {},
            ),
        )
        for noise in NOISES
        for layer in LAYERS
    ]  # fmt: skip


def tables(result: Sequence[TrainedRun]) -> list[Table]:
    """Accuracy by layer and length of noise."""
    return [orders.accuracies("Digits before noise, chance 10", result)]


def findings(result: Sequence[TrainedRun]) -> list[Finding]:
    """The order of the layers, for each length of noise."""
    return [
        finding
        for noise in NOISES
        for finding in orders.in_order(result, *(f"{layer}, noise {noise}" for layer in LAYERS))
    ]


measured, draw = orders.unchanged, orders.curves
