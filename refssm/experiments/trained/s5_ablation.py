"""S5's choices, one at a time: steps, blocks, poles, and continuous or discrete parameters.

Each row changes one thing of the usual S5 (HiPPO-N in one block, a step for each state), or makes
the poles themselves the parameters (`s5_discrete`). The published tables are of LRA, where models
are a hundred times as large; digits are learnt by most starts.
"""

from collections.abc import Sequence

from refssm.experiments.claims import Claim, Finding
from refssm.experiments.digits import MODEL, PLAN
from refssm.experiments.systems import Table
from refssm.experiments.trained import orders
from refssm.experiments.trained.trials import PlannedRun, TrainedRun, of_length
from refssm.training.setup import Setup

CLAIM = Claim(
    "poles of HiPPO-N are ahead of random and of antisymmetric ones; a step for each state is "
    "ahead of one step for all; continuous parameters are ahead of discrete ones",
    "smith2023s5",
)
POLES = {"HiPPO-N": "hippo-n", "Gaussian": "random", "antisymmetric": "antisymmetric"}
MODELS = {
    **{f"continuous, {name}": ("s5", {"poles": poles}, {}) for name, poles in POLES.items()},
    "continuous, HiPPO-N, one step": ("s5", {"steps": "scalar"}, {}),
    "continuous, HiPPO-N, 4 blocks": ("s5", {}, {"blocks": 4}),
    **{f"discrete, {name}": ("s5_discrete", {"poles": p}, {}) for name, p in POLES.items()},
}


def trials(*, quick: bool = False) -> list[PlannedRun]:
    """All rows."""
    plan = of_length(PLAN, quick)
    return [
        PlannedRun(name, Setup("digits", layer, start=start, sizes=sizes, plan=plan, **MODEL))
        for name, (layer, start, sizes) in MODELS.items()
    ]


def tables(result: Sequence[TrainedRun]) -> list[Table]:
    """Accuracy of each row."""
    return [orders.accuracies("Digits, chance 10", result)]


def findings(result: Sequence[TrainedRun]) -> list[Finding]:
    """HiPPO-N against the other poles, vector against scalar steps, continuous against discrete."""
    found = []
    for kind in ("continuous", "discrete"):
        for poles in ("Gaussian", "antisymmetric"):
            found += orders.in_order(result, f"{kind}, HiPPO-N", f"{kind}, {poles}")
    usual = "continuous, HiPPO-N"
    for other in ("continuous, HiPPO-N, one step", "continuous, HiPPO-N, 4 blocks"):
        found += orders.in_order(result, usual, other)
    return found + orders.in_order(result, usual, "discrete, HiPPO-N")


measured, draw = orders.unchanged, orders.curves
