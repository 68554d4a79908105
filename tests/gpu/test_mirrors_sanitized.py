"""Every launch of every mirror and gradient under the sanitizers, at small ragged sizes: silence.

`test_host_planted.py` holds that the sanitizers report what is planted.
"""

import numpy as np
import pytest
from kernel_judging import MIRRORED, SLOW, type_of_turn
from launching import ragged
from rotation import TURNS, TWELFTHS, of_turn

from refssm.conformance.calling.adapters.numpy_arrays import cast
from refssm.conformance.number_types import number_type
from refssm_gpu._host.sanitize import reports


def sentences(op, dtype):
    """What the sanitizers say about the launches of an operator and its gradient."""
    return [told for case in ragged(op, dtype) for told in sentences_of(op, case, dtype)]


def sentences_of(op, case, dtype):
    """The same for one case."""
    shapes, kinds = op.output_shapes(*case.arrays, **case.statics), op.output_types(*case.arrays)
    ones = [np.ones(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
    kind = number_type(dtype)
    arrays, cotangents = ([cast(a, kind) for a in made] for made in (case.arrays, ones))

    def call():
        op.implementation("gpu")(*arrays, **case.statics)
        if op.differentiable:
            op.vjp("gpu")(*cotangents, *arrays, **case.statics)

    return reports(call)


# one in twelve, of slow families in 36
IN_TURN = [
    op for op in MIRRORED if of_turn(f"sanitized {op}", TURNS if op.family in SLOW else TWELFTHS)
]


@pytest.mark.parametrize("op", IN_TURN, ids=str)
def test_the_sanitizers_are_silent_about_the_mirrors_of_this_turn(op):
    assert sentences(op, type_of_turn(op)) == []


@pytest.mark.long
@pytest.mark.parametrize("op", MIRRORED, ids=str)
def test_the_sanitizers_are_silent_about_every_mirror(op):
    assert sentences(op, type_of_turn(op)) == []
