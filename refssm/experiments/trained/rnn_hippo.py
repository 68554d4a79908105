"""What a HiPPO matrix gives a recurrent network: nothing, a memory beside it, its recurrence, S4.

All read digits pixel by pixel with the same plan. `rnn` with the recurrence I + dt A of LegS is a
plain network that only starts there; `hippo_rnn` has a memory that is not trained beside its state;
S4 trains a HiPPO system without a nonlinearity in time.
"""

from collections.abc import Sequence

from refssm.experiments.claims import Claim, Finding
from refssm.experiments.digits import MODEL, PLAN
from refssm.experiments.systems import Table
from refssm.experiments.trained import orders
from refssm.experiments.trained.trials import PlannedRun, TrainedRun, of_length
from refssm.training.setup import Setup

CLAIM = Claim(
    "a HiPPO memory beside a recurrent network learns what the plain network does not, and S4 is "
    "ahead of both; a HiPPO matrix as the recurrence of a plain network is not enough",
    "gu2020hippo",
)
MODELS = {
    "S4": ("s4", {}),
    "RNN with a HiPPO memory": ("hippo_rnn", {}),
    "RNN": ("rnn", {}),
    "RNN that starts with HiPPO": ("rnn", {"recurrence": "hippo"}),
}


def trials(*, quick: bool = False) -> list[PlannedRun]:
    """The four models."""
    plan = of_length(PLAN, quick)
    return [
        PlannedRun(name, Setup("digits", layer, start=start, plan=plan, **MODEL))
        for name, (layer, start) in MODELS.items()
    ]


def tables(result: Sequence[TrainedRun]) -> list[Table]:
    """Accuracy of each model."""
    return [orders.accuracies("Digits, chance 10", result)]


def findings(result: Sequence[TrainedRun]) -> list[Finding]:
    """S4 before the memory before the plain network; the start alone is no memory."""
    memory, start = "RNN with a HiPPO memory", "RNN that starts with HiPPO"
    return orders.in_order(result, "S4", memory, "RNN") + orders.in_order(result, memory, start)


measured, draw = orders.unchanged, orders.curves
