"""All laws, in the order in which they are checked: those that find most come first."""

from refssm._declaration.operator import Operator
from refssm.conformance.checks.batch_laws import batch, group
from refssm.conformance.checks.law import Law
from refssm.conformance.checks.linear_laws import additive, scaling, zero
from refssm.conformance.checks.special_values import nan
from refssm.conformance.checks.time_laws import causal, joined, prefix, rollback, shift, split

LAWS: tuple[Law, ...] = (
    split,
    nan,
    prefix,
    additive,
    scaling,
    zero,
    causal,
    shift,
    batch,
    group,
    joined,
    rollback,
)


def laws_of(op: Operator) -> list[Law]:
    """The laws that apply to an operator, in the order of the table."""
    return [law for law in LAWS if law.owed(op)]
