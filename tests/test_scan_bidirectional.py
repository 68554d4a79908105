import numpy as np
import pytest
from recurrences import drawn, each_role, each_type, integers, random

from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.scan import DIAGONAL_SSM, DIAGONAL_SSM_BIDIRECTIONAL, LINEAR_SCAN

N = 3


def both_ways(role):
    return DIAGONAL_SSM_BIDIRECTIONAL.implementation(role)


def halves(C):
    """The columns of C for the past, and those for the future."""
    return C[..., :N], C[..., N:]


def exchanged(C):
    return np.concatenate(halves(C)[::-1], axis=-1)


@each_role
def test_the_first_output_is_the_last_one_of_reversed_time(role):
    one = np.ones((1, 1))
    y = both_ways(role)([0.5], one, [[1.0, 10.0]], 0 * one, [[1.0], [0.0], [2.0]])
    assert y.ravel().tolist() == [1 + 10 * 1.5, 0.5 + 10 * 1.0, 2.25 + 10 * 2.0]


@each_role
def test_an_impulse_in_the_middle_is_seen_by_both_halves_at_lag_zero(role):
    a, B, C, D = drawn(DIAGONAL_SSM_BIDIRECTIONAL, 1)[:4]
    u = np.zeros((11, 2))
    u[5, 0] = 1
    y, (past, future) = both_ways(role)(a, B, C, D, u), halves(C)
    for k in range(11):
        wanted = D[:, 0] if k == 5 else 0
        if k >= 5:
            wanted = wanted + (past * a ** (k - 5)) @ B[:, 0]
        if k <= 5:
            wanted = wanted + (future * a ** (5 - k)) @ B[:, 0]
        assert np.array_equal(y[k], wanted), k


@each_role
@each_type
def test_half_of_c_reads_the_past_as_the_causal_form_does_the_other_reversed_time(role, dtype):
    causal = DIAGONAL_SSM.implementation(role)
    for draw in (integers, random):
        a, B, C, D, u = drawn(DIAGONAL_SSM_BIDIRECTIONAL, 2, draw, dtype)
        past, future = halves(C)
        none = np.zeros_like(past)
        y = both_ways(role)(a, B, np.concatenate([past, none], axis=-1), D, u)
        assert judge(DIAGONAL_SSM, lambda *_, y=y: y, a, B, past, D, u).ok
        assert draw is random or np.array_equal(y, causal(a, B, past, D, u))
        y = both_ways(role)(a, B, np.concatenate([none, future], axis=-1), D, u)[::-1].copy()
        assert judge(DIAGONAL_SSM, lambda *_, y=y: y, a, B, future, D, u[::-1]).ok
        assert draw is random or np.array_equal(y, causal(a, B, future, D, u[::-1]))


@each_role
@each_type
def test_it_is_the_sum_of_two_scans_and_the_skip_once(role, dtype):
    a, B, C, D, u = drawn(DIAGONAL_SSM_BIDIRECTIONAL, 3, dtype=dtype)
    scan, driven = LINEAR_SCAN.implementation(role), u @ B.T
    decays, (past, future) = np.broadcast_to(a, driven.shape), halves(C)
    x, z = scan(decays, driven), scan(decays, driven[::-1])[::-1]
    assert np.array_equal(both_ways(role)(a, B, C, D, u), x @ past.T + z @ future.T + u @ D.T)


@each_role
@each_type
def test_turning_time_round_exchanges_the_halves(role, dtype):
    a, B, C, D, u = drawn(DIAGONAL_SSM_BIDIRECTIONAL, 4, dtype=dtype, l=9)
    y = both_ways(role)(a, B, C, D, u)
    assert np.array_equal(both_ways(role)(a, B, exchanged(C), D, u[::-1])[::-1], y)


@each_role
def test_what_begins_at_lag_minus_one_elsewhere_is_had_by_other_matrices(role):
    a, (B, C, D, u) = np.array([0.5, -2.0, 1j]), integers(10, (3, 2), (2, 6), (2, 2), (7, 2))
    (past, future), decays = halves(C), np.broadcast_to(a, (7, 3))
    scan, driven = LINEAR_SCAN.implementation(role), u @ B.T
    x, z = scan(decays, driven), scan(decays, driven[::-1])[::-1]
    later = np.vstack([z[1:], np.zeros(3)])
    elsewhere = x @ past.T + later @ future.T + u @ D.T
    ours = np.hstack([past, future / a]), D - future / a @ B
    assert np.array_equal(both_ways(role)(a, B, *ours, u), elsewhere)


@each_role
def test_a_signal_that_is_its_own_reverse_gives_an_output_that_is(role):
    a, B, C, D, u = drawn(DIAGONAL_SSM_BIDIRECTIONAL, 5, l=5)
    C = np.concatenate([halves(C)[0]] * 2, axis=-1)
    u = np.vstack([u, u[-2::-1]])
    y = both_ways(role)(a, B, C, D, u)
    assert np.array_equal(y, y[::-1])


@each_role
def test_one_step_sees_its_input_twice(role):
    a, B, C, D, u = drawn(DIAGONAL_SSM_BIDIRECTIONAL, 6, l=1)
    past, future = halves(C)
    y = both_ways(role)(np.nan * a, B, C, D, u)  # the decays are not used
    assert np.array_equal(y, u @ ((past + future) @ B + D).T)


@each_role
def test_nan_at_one_time_reaches_all(role):
    arrays = [np.ones_like(x) for x in drawn(DIAGONAL_SSM_BIDIRECTIONAL, 7)]
    for k in range(6):
        arrays[4][:] = 1
        arrays[4][k, 0] = np.nan
        assert kind_of(both_ways(role)(*arrays)).all()
    arrays[4] = np.ones((2, 6, 2))
    arrays[4][0, 3] = np.inf
    y = both_ways(role)(*arrays)
    assert np.isinf(y[0]).all()
    assert np.isfinite(y[1]).all()


@each_role
def test_gradients_are_those_of_both_directions_added(role):
    a, B, C, D, u = drawn(DIAGONAL_SSM_BIDIRECTIONAL, 8, dtype="complex128")
    dy = both_ways(role)(a, B, C, D, u)
    da, dB, dC, dD, du = DIAGONAL_SSM_BIDIRECTIONAL.vjp(role)(dy, a, B, C, D, u)
    vjp, (past, future) = DIAGONAL_SSM.vjp(role), halves(C)
    x, z = vjp(dy, a, B, past, D, u), vjp(dy[::-1], a, B, future, 0 * D, u[::-1])
    assert np.array_equal(da, x[0] + z[0])
    assert np.array_equal(dB, x[1] + z[1])
    assert np.array_equal(dC, np.hstack([x[2], z[2]]))
    assert np.array_equal(dD, x[3])
    assert np.array_equal(du, x[4] + z[4][::-1])


@each_role
def test_the_gradient_of_one_step_by_hand(role):
    one = [[1.0]]
    arrays = [5.0], [[2.0]], [[3.0, 1j]], [[7.0]], one
    da, dB, dC, dD, du = DIAGONAL_SSM_BIDIRECTIONAL.vjp(role)([[1 + 1j]], *arrays)
    assert da.tolist() == [0]
    assert dC.tolist() == [[2 + 2j, 2 + 2j]]
    assert dB.tolist() == [[3 + 1]]  # Re (3 − i)(1 + i)
    assert dD.tolist() == one
    assert du.tolist() == [[8 + 7]]


@pytest.mark.parametrize("l", [1, 2, 31, 64])
@each_role
def test_the_judge_takes_it_and_not_what_begins_one_step_later(role, l):
    a, B, C, D, u = drawn(DIAGONAL_SSM_BIDIRECTIONAL, 9, random, l=l)
    a /= np.abs(a) * 1.1
    op = DIAGONAL_SSM_BIDIRECTIONAL
    assert judge(op, both_ways(role), a, B, C, D, u).grade == "A"
    future = halves(C)[1]
    later = both_ways(role)(a, B, C, D - future @ B, u)  # without lag 0 of the future
    assert judge(op, lambda *_: later, a, B, C, D, u).grade == "F"
