"""Every launch of every mirror and gradient under the sanitizers, at small ragged sizes: silence.

`test_host_planted.py` holds that the sanitizers report what is planted.
"""

import numpy as np
import pytest
from kernel_judging import MIRRORED, type_of_turn
from rotation import of_turn

from refssm.conformance.cases.case import ordinary_case
from refssm_gpu._host.sanitize import reports

SIZES = (37, 5, 7, 3)  # of core dimensions, as the signature names them: no multiple of a tile


def arguments(op, dtype):
    """Ordinary arguments, keywords, and cotangents of ones."""
    case = ordinary_case(op, dtype, SIZES)
    y = op.output_shapes(*case.arrays, **case.statics)
    kinds = op.output_types(*case.arrays)
    return case, [np.ones(shape, kind) for shape, kind in zip(y, kinds, strict=True)]


def sentences(op, dtype):
    """What the sanitizers say about the launches of an operator and its gradient."""
    case, cotangents = arguments(op, dtype)

    def call():
        op.implementation("gpu")(*case.arrays, **case.statics)
        if op.differentiable:
            op.vjp("gpu")(*cotangents, *case.arrays, **case.statics)

    return reports(call)


@pytest.mark.parametrize("op", [op for op in MIRRORED if of_turn(f"sanitized {op}")], ids=str)
def test_the_sanitizers_are_silent_about_a_sixth_of_the_mirrors(op):
    assert sentences(op, type_of_turn(op)) == []


@pytest.mark.long
@pytest.mark.parametrize("op", MIRRORED, ids=str)
def test_the_sanitizers_are_silent_about_every_mirror(op):
    assert sentences(op, type_of_turn(op)) == []
