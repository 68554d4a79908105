from itertools import product

import numpy as np
import pytest
from recurrences import TYPES, each_role, each_type, integers, random

from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.scan import LINEAR_SCAN_FROM, LINEAR_STEP


def step(role):
    return LINEAR_STEP.implementation(role)


@each_role
def test_one_step_by_hand(role):
    assert step(role)([0.5, 3.0, 1j], [2.0, -1.0, 0.0], [0.5, 2.0, 1j]).tolist() == [2.25, 5, -1]


@each_role
@each_type
def test_steps_are_the_scan_from_a_state(role, dtype):
    a, b, x0 = random(1, (50, 4), (50, 4), (4,), dtype=dtype)
    a /= np.maximum(np.abs(a), 1)
    state, x = x0, LINEAR_SCAN_FROM.implementation(role)(a, b, x0)
    for k in range(50):
        state = step(role)(a[k], b[k], state)
        assert np.array_equal(state, x[k]), k


@each_role
def test_doubling_counts_powers_of_two_and_minus_one_alternates(role):
    x, sign = np.ones(1), np.ones(1)
    for k in range(1, 1000):
        x, sign = step(role)([2.0], [0.0], x), step(role)([-1.0], [0.0], sign)
        assert (x[0], sign[0]) == (2.0**k, (-1) ** k)


@each_role
def test_nan_stays_in_its_component(role):
    for i in range(3):
        arrays = np.ones((3, 3))
        arrays[i, 1] = np.nan
        assert kind_of(step(role)(*arrays)).tolist() == [0, 2, 0]
    assert kind_of(step(role)([0.0, np.inf], [1.0, 1.0], [np.inf, 0.0])).tolist() == [2, 2]


@each_role
def test_the_gradient_by_hand(role):
    da, db, dx = LINEAR_STEP.vjp(role)([1 + 1j, 7.0], [2j, 3.0], [0.0, 0.0], [5.0, -1j])
    assert da.tolist() == [5 + 5j, 7j]
    assert db.tolist() == [1, 7]
    assert dx.tolist() == [(1 + 1j) * -2j, 21]


@pytest.mark.parametrize("types", list(product(TYPES, TYPES)), ids="-".join)
@each_role
def test_result_and_gradients_have_the_types_and_kinds_of_the_arguments(role, types):
    a, b, x = np.ones(2, types[0]), np.ones(2, types[1]), np.ones(2, "float32")
    after = step(role)(a, b, x)
    assert after.dtype == np.result_type(a, b)
    gradients = LINEAR_STEP.vjp(role)(after, a, b, x)
    assert [g.dtype.kind for g in gradients] == [y.dtype.kind for y in (a, b, x)]
    assert {np.finfo(g.dtype).dtype for g in gradients} == {np.finfo(after.dtype).dtype}


@each_role
def test_leading_axes_broadcast(role):
    a, b, x = integers(2, (3,), (4, 1, 3), (2, 3))
    assert step(role)(a, b, x).shape == (4, 2, 3)
    assert judge(LINEAR_STEP, step(role), a, b, x).grade == "A"
    gradients = LINEAR_STEP.vjp(role)(step(role)(a, b, x), a, b, x)
    assert [g.shape for g in gradients] == [(3,), (4, 1, 3), (2, 3)]
    assert step(role)(*np.ones((3, 0))).shape == (0,)


@each_role
def test_the_state_is_not_stepped_in_place(role):
    arrays = integers(3, (3,), (3,), (3,))
    before = [a.copy() for a in arrays]
    after, cotangent = step(role)(*arrays), np.ones(3)
    gradients = LINEAR_STEP.vjp(role)(cotangent, *arrays)
    assert all(map(np.array_equal, arrays, before))
    for new, old in product((after, *gradients), (*arrays, cotangent)):
        assert not np.shares_memory(new, old)


@each_role
def test_sizes_that_disagree_are_told(role):
    with pytest.raises(ValueError, match=r"^linear_step: `x` has n=1, but earlier arguments"):
        step(role)([1.0, 1.0], [1.0, 1.0], [1.0])
    with pytest.raises(ValueError, match=r"`a` needs core shape \(n\), got shape \(\)"):
        step(role)(1.0, [1.0], [1.0])
