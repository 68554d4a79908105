"""At the boundary of packed sequences, in every family: NaN and infinity stay on their side."""

import numpy as np
import pytest
from selective import ROLES, exact, sequences

from refssm.scan import LINEAR_SCAN_PACKED
from refssm.selective_scan import MAMBA_SCAN_PACKED, SELECTIVE_SCAN_PACKED
from refssm.ssd import SSD_CHUNKED_PACKED, SSD_RECURRENT_PACKED

OF_STEPS = [SELECTIVE_SCAN_PACKED, MAMBA_SCAN_PACKED]  # their decays are e^{dt A}
OF_DECAYS = [LINEAR_SCAN_PACKED, SSD_RECURRENT_PACKED, SSD_CHUNKED_PACKED]
DECAYS = ("a", "log_a")
OVER_TIME = ("D", "dt_bias")  # sums over all steps, also those without decay
LENGTH = 7
each_role = pytest.mark.parametrize("role", ROLES)
each_special = pytest.mark.parametrize("special", [np.nan, np.inf], ids=str)


def each_of(*ops):
    return pytest.mark.parametrize("op", ops, ids=str)


def statics(op):
    return dict.fromkeys(op.static, 3)


def pulled(op, role, dy, *arrays):
    """The gradients by name, without that of the resets."""
    return dict(zip(op.inputs, op.vjp(role)(dy, *arrays, **statics(op))[:-1], strict=False))


def at(k):
    return np.arange(LENGTH) == k


def cotangent(op, role, arrays):
    return np.ones_like(op.implementation(role)(*arrays, **statics(op)))


@each_of(*OF_STEPS, *OF_DECAYS)
@each_role
@each_special
def test_a_cotangent_behind_a_reset_reaches_no_gradient_before_it(op, role, special):
    *arrays, _ = exact(op, 1)
    dy = cotangent(op, role, (*arrays, at(0)))
    for k in range(1, LENGTH):
        clean = pulled(op, role, dy, *arrays, at(k))
        for j in range(k, LENGTH):
            bad = dy.copy()
            bad[j] = special
            gradients = pulled(op, role, bad, *arrays, at(k))
            for name, dims in zip(gradients, op.input_dims, strict=False):
                assert "l" not in dims or np.array_equal(gradients[name][:k], clean[name][:k])


@each_of(*OF_STEPS, *OF_DECAYS)
@each_role
@each_special
def test_a_cotangent_at_a_reset_reaches_no_other_step_and_no_decay(op, role, special):
    *arrays, _ = exact(op, 2)
    dy = cotangent(op, role, (*arrays, at(0)))
    for k in range(1, LENGTH):
        clean, bad = pulled(op, role, dy, *arrays, at(k)), dy.copy()
        bad[k] = special
        gradients = pulled(op, role, bad, *arrays, at(k))
        for name, dims in zip(gradients, op.input_dims, strict=False):
            others = ~at(k) if "l" in dims else ...
            same = np.array_equal(gradients[name][others], clean[name][others])
            assert same or name in OVER_TIME, (name, k)
        assert not any(gradients[name][k].any() for name in DECAYS if name in gradients)


@each_of(*OF_DECAYS)
@each_role
@each_special
def test_a_decay_at_a_reset_is_in_no_output_and_no_gradient(op, role, special):
    *arrays, _ = exact(op, 3)
    dy = cotangent(op, role, (*arrays, at(0)))
    (i,) = (i for i, name in enumerate(op.inputs) if name in DECAYS)
    for k in range(1, LENGTH):
        y = op.implementation(role)(*arrays, at(k), **statics(op))
        clean = pulled(op, role, dy, *arrays, at(k))
        bad = [a.copy() for a in arrays]
        bad[i][k] = special
        assert np.array_equal(op.implementation(role)(*bad, at(k), **statics(op)), y)
        gradients = pulled(op, role, dy, *bad, at(k))
        assert all(np.array_equal(gradients[name], clean[name]) for name in clean)


@each_of(*OF_STEPS)
@each_role
def test_a_decay_that_overflows_at_a_reset_is_in_no_gradient(op, role):
    *arrays, _ = exact(op, 4)
    _, dt, A, *_ = arrays
    A[...] = 0.1
    dy = cotangent(op, role, (*arrays, at(0)))
    for k in range(1, LENGTH):
        clean, usual = pulled(op, role, dy, *arrays, at(k)), dt[k]
        dt[k] = 1e4  # e^1000
        gradients = pulled(op, role, dy, *arrays, at(k))
        dt[k] = usual
        first, _ = sequences(at(k))
        for name, dims in zip(gradients, op.input_dims, strict=False):
            assert np.isfinite(gradients[name]).all(), (name, k)
            assert "l" not in dims or np.array_equal(gradients[name][first], clean[name][first])


@each_of(SELECTIVE_SCAN_PACKED)
@each_role
def test_by_hand_a_gradient_of_the_rates_without_the_step_at_the_reset(op, role):
    ones = np.ones((4, 1))
    arrays = ones[:, 0], ones[:, 0], [0.0], ones, ones, [False, False, True, False]
    _, _, dA, *_ = op.vjp(role)([1.0, 1.0, np.nan, 1.0], *arrays)
    assert dA == 2  # from the second step and the fourth
