"""All laws, in the order in which they are checked: those that find most come first."""

from refssm._declaration.operator import Operator
from refssm.conformance.checks.batch_laws import BATCH, GROUP
from refssm.conformance.checks.law import Law
from refssm.conformance.checks.linear_laws import ADDITIVE, SCALING, ZERO
from refssm.conformance.checks.special_values import NAN
from refssm.conformance.checks.time_laws import CAUSAL, PREFIX, SHIFT, SPLIT

LAWS: tuple[Law, ...] = (
    SPLIT,
    NAN,
    PREFIX,
    ADDITIVE,
    SCALING,
    ZERO,
    CAUSAL,
    SHIFT,
    BATCH,
    GROUP,
)


def laws_of(op: Operator) -> list[Law]:
    """The laws that apply to an operator, in the order of the table."""
    return [law for law in LAWS if law.owed(op)]
