"""Cases at the ends of domains, where the arguments of an operator have few entries."""

import numpy as np
import pytest
from judging import judged

from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.cases.kinds import ends
from refssm.conformance.cases.sampling import Choices, made
from refssm.domains import preactivations, step_sizes

SEEDS = pytest.mark.parametrize("seed", range(5))
STEPS = [op for op in OPERATORS if op.name.endswith("_step")]


def clamped(name, most):
    """The operator with a smaller `dt` where that is larger than `most`."""
    op = operator_named(name)
    i = [*op.inputs].index("dt")

    def wrong(*arguments):
        dt = np.minimum(arguments[i], arguments[i].dtype.type(most))
        return op.reference(*arguments[:i], dt, *arguments[i + 1 :])

    return wrong


@SEEDS
@pytest.mark.parametrize(("name", "most"), [("selective_step", 8), ("hope_step", 50)])
def test_a_step_that_is_clamped_near_the_end_of_its_domain_is_refused(name, most, seed):
    (line,) = judged(name, clamped(name, most), "value", types=("float32",), seed=seed)
    assert line.failed


@SEEDS
def test_a_softplus_that_is_linear_from_8_and_a_half_on_is_refused_in_single_precision(seed):
    def wrong(u, dt, A, B, C, D, z, dt_bias):
        v = dt + dt_bias[..., None]
        step = np.where(v > 8.5, v, np.logaddexp(0, v)).astype(v.dtype)
        y = operator_named("selective_scan").reference(u, step, A, B, C)
        return (y + D[..., None] * u) * (z / (1 + np.exp(-z)))

    (line,) = judged("mamba_scan", wrong, "value", types=("float32",), seed=seed)
    assert line.failed


@pytest.mark.parametrize("op", STEPS, ids=str)
def test_steps_have_cases_at_both_ends_and_their_largest_step_is_drawn(op):
    drawn = [made(s, Choices()).case for s in ends.samplers(op, "float32")]
    assert len(drawn) >= len(ends.KINDS)
    for i, domain in enumerate(op.inputs.values()):
        if domain is step_sizes:
            assert max(float(case.arrays[i].max()) for case in drawn) > 8


def test_the_ends_of_a_domain_are_the_smallest_modulus_above_zero_and_the_largest():
    assert ends.end(step_sizes, "low", True) == ("wide", ends.NEAR_0)
    assert ends.end(step_sizes, "high", True) == ("wide", ends.NEAR_1)
    assert ends.end(preactivations, "high", True) in {
        ("wide", ends.NEAR_1),
        ("saturated", ends.NEAR_1),
    }


def test_types_of_16_bits_have_no_such_cases():
    assert ends.samplers(STEPS[0], "bfloat16") == ()
