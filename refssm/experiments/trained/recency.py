"""HOPE's start: a bias to recent inputs, and the bounds of the step.

`gamma` multiplies the Markov parameter h_j by (j + 1)^γ at the start: below 0 recent inputs count
more. A step dt lets a HOPE system of n Markov parameters see about n/dt samples. The digits are
followed by 128 steps of noise, so a model whose window is shorter than that cannot answer.
"""

from collections.abc import Sequence

from refssm.experiments.claims import Claim, Finding
from refssm.experiments.digits import MODEL, PLAN
from refssm.experiments.systems import Table
from refssm.experiments.trained import orders
from refssm.experiments.trained.trials import PlannedRun, TrainedRun, of_length
from refssm.training.setup import Setup

CLAIM = Claim(
    "the recency bias and the bounds of the steps decide how far back HOPE remembers: steps that "
    "make its window shorter than the noise fail, a bias to what is recent costs accuracy",
    "yu2024hope",
)
NOISE = 128
STARTS = {
    "usual": {},
    "gamma = −1": {"gamma": -1.0},
    "steps 0.5 to 1": {"dt_min": 0.5, "dt_max": 1.0},
    "steps 1e-4 to 1e-3": {"dt_min": 1e-4, "dt_max": 1e-3},
}


def trials(*, quick: bool = False) -> list[PlannedRun]:
    """Each start of HOPE."""
    plan = of_length(PLAN, quick)
    how = {"task_sizes": {"noise": NOISE}, "plan": plan, **MODEL}
    return [
        PlannedRun(name, Setup("padded_digits", "hope", start=start, **how))
        for name, start in STARTS.items()
    ]


def tables(result: Sequence[TrainedRun]) -> list[Table]:
    """Accuracy by start."""
    return [orders.accuracies(f"HOPE, digits before {NOISE} steps of noise, chance 10", result)]


def findings(result: Sequence[TrainedRun]) -> list[Finding]:
    """The usual start against each other one."""
    others = [name for name in STARTS if name != "usual"]
    return [f for name in others for f in orders.in_order(result, "usual", name)]


measured, draw = orders.unchanged, orders.curves
