"""Laws that anybody may write of the judge's cases, generic over the catalog."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import laws, several

from refssm.catalog import OPERATORS
from refssm.conformance.checks.checks import types_of
from refssm.testing import assert_right, bound, cases, expected

few = settings(laws, max_examples=8)
ENTRYWISE = [op for op in OPERATORS if not op.contract.basis_free]


def types(op):
    """The types of its cases."""
    return types_of(op)[-1:] if op.constructor else (types_of(op)[0], types_of(op)[-1])


def judged(ops=OPERATORS):
    """Parametrization over operators, in their first type and in their widest one."""
    rows = [pytest.param(op, t, id=f"{op}-{t}") for op in ops for t in types(op)]
    return pytest.mark.parametrize(("op", "dtype"), rows)


def inside(case, y, allowed):
    """Whether each entry of each output is within its bound."""
    pairs = zip(several(y), several(expected(case)), several(allowed), strict=True)
    return all((np.abs(a - b) <= most).all() for a, b, most in pairs)


@pytest.mark.long
@judged(ENTRYWISE)
@given(data=st.data())
@few
def test_every_reference_is_within_the_bound_of_what_is_expected(op, dtype, data):
    case = data.draw(cases(op.name, dtype, entries=128))
    y = op.implementation("reference")(*case.arrays, **case.statics)
    assert inside(case, y, bound(case, y, grade="B"))
    assert_right(case, y)


@pytest.mark.long
@judged([op for op in OPERATORS if op.contract.basis_free])
@given(data=st.data())
@few
def test_every_basis_is_right_where_any_is(op, dtype, data):
    case = data.draw(cases(op.name, dtype, entries=128))
    assert_right(case, op.implementation("reference")(*case.arrays, **case.statics))


@pytest.mark.long
@judged(ENTRYWISE)
def test_an_error_of_one_part_in_a_hundred_is_outside_the_bound(op, dtype):
    caught = []

    @given(case=cases(op.name, dtype, entries=128, tame=True))
    @few
    def law(case):
        y = several(op.implementation("reference")(*case.arrays, **case.statics))
        wrong = [(1.01 * a).astype(a.dtype) for a in y]
        returned = tuple(wrong) if len(wrong) > 1 else wrong[0]
        caught.append(not inside(case, returned, bound(case, returned, grade="B")))

    law()
    assert any(caught)


@pytest.mark.long
@judged([op for op in ENTRYWISE if op.differentiable])
@given(data=st.data())
@settings(laws, max_examples=4)
def test_every_gradient_is_within_the_bound_of_what_is_expected(op, dtype, data):
    double = dtype in ("float64", "complex128")
    if double and not op.contract.judges_gradients_in_double:
        return
    case = data.draw(cases(op.name, dtype, entries=64, subnormal=False))
    gradients = op.vjp()(*case.cotangents, *case.arrays, **case.statics)
    told = zip(gradients, expected(case, case.cotangents),
               bound(case, gradients, case.cotangents, grade="B"), strict=True)  # fmt: skip
    for g, value, most in told:
        assert (g is None) == (value is None) == (most is None)
        assert g is None or (np.abs(g - value) <= most).all()
    assert_right(case, gradients, case.cotangents)


@pytest.mark.long
@pytest.mark.parametrize("name", ["linear_scan", "selective_scan", "ssd_chunked", "cauchy_kernel"])
@given(data=st.data(), size=st.floats(0.25, 4))
@few
def test_bounds_and_verdicts_agree_on_errors_around_the_bound(name, data, size):
    case = data.draw(cases(name, entries=128))
    y = expected(case)
    wide = y.astype(np.result_type(y, np.float64))
    near = wide + size * bound(case, wide)
    passed = bool((np.abs(near - y) <= bound(case, near, grade="N")).all())
    try:
        assert_right(case, near)
    except AssertionError:
        assert not passed
    else:
        assert passed


@pytest.mark.parametrize("name", ["linear_scan", "selective_scan", "ssd_chunked", "cauchy_kernel"])
def test_usual_settings_of_hypothesis_draw_cases_without_a_health_check(name):
    # said here, because Hypothesis leaves out `too_slow` by itself where CI is set
    every = settings(
        max_examples=20,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=(),
    )

    @given(case=cases(name))
    @every
    def law(case):
        assert case.arrays

    law()
