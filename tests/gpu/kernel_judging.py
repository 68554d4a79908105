"""What tests of the GPU mirror share: operators with the role, and the judge on the host build."""

from rotation import ROTATION

from refssm.catalog import OPERATORS
from refssm.conformance.checks.checks import types_of
from refssm.testing import check

MIRRORED = [op for op in OPERATORS if "gpu" not in op.lacks]


def type_of_turn(op):
    """One of the operator's types, another one in each rotation."""
    types = types_of(op)
    return types[ROTATION % len(types)]


def judge(op, dtype, profile="quick"):
    """Judge the mirror and its gradient in one type; AssertionError with the report if it fails."""
    forward = op.implementation("gpu")
    vjp = op.vjp("gpu") if op.differentiable else None
    check(op.name, forward, vjp=vjp, profile=profile, dtypes=(dtype,))
    if profile == "quick" and vjp:  # it has no check of the gradient
        check(op.name, forward, vjp=vjp, profile=profile, dtypes=(dtype,), checks=("gradient",))
