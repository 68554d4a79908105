"""What tests of the GPU mirror share: operators with the role, and the judge on the host build."""

import pytest
from array_level import ARRAY_LEVEL
from rotation import ROTATION, TURNS, of_turn

from refssm.catalog import OPERATORS
from refssm.conformance.checks.checks import PROFILES, checks_of, types_of
from refssm.testing import check
from refssm_gpu._host.settings import settings
from refssm_gpu._launching.arrays import HALVES

ORDER = (0, 1, 7)[ROTATION % 3]  # of threads on the host build; a card does not ask

MIRRORED = [op for op in OPERATORS if "gpu" not in op.lacks]
# a block of threads for each state: half a minute for an operator
SLOW = ("linear_attention", "xlstm", "mamba3")


def each_in_turn(operators, turns: int):
    """The operators as parameters: one in so many, of slow families in 36; the rest is long."""
    return [
        pytest.param(op, marks=() if of_turn(f"judged {op}", of) else pytest.mark.long, id=str(op))
        for op in operators
        for of in [TURNS if op.family in SLOW else turns]
    ]


def types(op):
    """The types of an operator's mirror, the halves that it takes last."""
    takes = op.implementation("gpu").__refssm__.dtypes
    return (*types_of(op), *(half for half in HALVES if half in takes))


def type_of_turn(op):
    """One of the types: in one rotation of six a double one, whose truth takes longer.

    Array code, which has no kernel, is judged in double in the long run only: the truth of a
    transfer function of a dense matrix takes minutes.
    """
    double = [t for t in types(op) if t in ("float64", "complex128")]
    own = of_turn(f"double {op}") and op not in ARRAY_LEVEL
    every = double if own else [t for t in types(op) if t not in double]
    return every[ROTATION % len(every)]


def has_gradient(op, dtype):
    """Whether the judge judges gradients in this type: not what LAPACK solves in double."""
    checks = checks_of(op, PROFILES["default"], (dtype,), vjp=True)
    return any(check.name == "gradient" for check in checks)


def judge(op, dtype, profile="quick", order=ORDER, flags=()):
    """Judge the mirror and its gradient in one type; AssertionError with the report if it fails."""
    forward = op.implementation("gpu")
    vjp = op.vjp("gpu") if op.differentiable else None
    with settings(order=order, flags=flags):
        check(op.name, forward, vjp=vjp, profile=profile, dtypes=(dtype,))
        if profile == "quick" and vjp and has_gradient(op, dtype):  # the profile has no such check
            check(op.name, forward, vjp=vjp, profile=profile, dtypes=(dtype,), checks=("gradient",))
