"""Cases with a large output: as many steps as it needs, also where all pairs of steps are in it."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks.conduct.resized import LARGE, LONGEST_OF_PAIRS, large
from refssm.linear_attention import CHUNK_GATES, CHUNK_INVERSE, CHUNK_PRODUCTS, CHUNK_WRITES


def enlarged(op):
    """The ordinary case with a large output."""
    case = ordinary_case(op, "float32")
    ((bigger, _),) = large(cast(Candidate, SimpleNamespace(op=op, between={})), case)
    return bigger


@pytest.mark.parametrize("op", [CHUNK_GATES, CHUNK_PRODUCTS, CHUNK_INVERSE], ids=str)
def test_an_output_has_as_many_bytes_as_are_wanted_and_at_most_eight_times_as_many(op):
    (shape,) = op.output_shapes(*enlarged(op).arrays)
    assert LARGE <= 4 * np.prod(shape) <= 8 * LARGE


def test_a_square_argument_has_a_side_of_at_most_512_steps():
    bigger = enlarged(CHUNK_WRITES)
    assert bigger.sizes["l"] == LONGEST_OF_PAIRS
