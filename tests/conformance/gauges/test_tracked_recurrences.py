"""Error rules of a state in units of e^m, of oscillators, and of angles on the circle."""

# pyright: reportAttributeAccessIssue=false
# (tracked arrays come back where tracked arrays go in, which pyright cannot see)

import numpy as np
import pytest

from refssm._numerics.circle import summed_angles, within_turn
from refssm._numerics.scales import as_excess, as_scale, in_units
from refssm.conformance.gauges.cumulated.mamba3 import plain_angles
from refssm.conformance.gauges.tracked import Tracked, tracing
from refssm.conformance.standard import C
from refssm.linoss import swung

U = 2.0**-24


def with_errors(values, k):
    """`values` with an error of k units of u in each of the two counts."""
    values = np.asarray(values, float)
    return Tracked(values, np.full((*values.shape, 2), float(k)))


def test_a_scale_is_right_whatever_it_is():
    with tracing(U, 0.0):
        m = as_scale(with_errors([1.0, -3.0], 5))
    assert m.value.tolist() == [1.0, -3.0]
    assert not m.errors.any()


def test_the_error_of_a_scale_is_a_relative_error_of_what_is_in_its_units():
    with tracing(U, 0.0):
        dS = in_units(with_errors([[2.0, -4.0]], 1), with_errors([3.0], 5))
    assert dS.value.tolist() == [[2.0, -4.0]]
    assert dS.errors[..., 0].tolist() == [[1 + 2 * 5, 1 + 4 * 5]]


def test_a_gradient_of_the_scale_is_right_or_left_out():
    with tracing(U, 0.0):
        left = as_excess(with_errors([0.0, 0.5], 1))
    assert left.errors[0].max() == 1
    assert left.errors[1].min() == 1 + 0.5 / U


def oscillators(seed, l, n, growth):
    """Rotations times `growth`, forces and a first state in single precision; resets at rest."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0.1, 3, n)
    M = growth * np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)])
    F, x0 = rng.standard_normal((l, 2, n)), rng.standard_normal((2, n))
    return [a.astype(np.float32) for a in (M, F, x0)]


@pytest.mark.parametrize("growth", [0.5, 0.99, 1.0])
@pytest.mark.parametrize("begins", [(), (40,)])
def test_single_precision_stays_within_the_bound_of_oscillators(growth, begins):
    M, F, x0 = oscillators(3, 100, 8, growth)
    resets = np.isin(np.arange(100), begins)
    with tracing(U, 0.0):
        exact = swung(with_errors(M, 0), with_errors(F, 0), with_errors(x0, 0), resets)
    x = swung(M, F, x0, resets)
    assert x.dtype == np.float32
    error = np.abs(x.astype(float) - exact.value)
    assert (error <= C * U * (exact.errors[..., 0] + np.abs(exact.value))).all()
    off = np.abs(1.01 * x - exact.value) > C * U * (exact.errors[..., 0] + np.abs(exact.value))
    assert off.mean() > 0.9


def test_what_a_reset_ends_has_no_error_after_it():
    M, F, x0 = oscillators(4, 10, 2, 1.0)
    resets = np.arange(10) == 6
    x0_off = with_errors(x0, 1e6)
    with tracing(U, 0.0):
        x = swung(with_errors(M, 0), with_errors(F, 0), x0_off, resets)
    assert (x.errors[:6] > 1e5).all()
    assert (x.errors[6:] < 100).all()


def on_the_circle(angles, others):
    """How far angles are apart, whole turns aside."""
    return np.abs((angles - others + np.pi) % (2 * np.pi) - np.pi)


def test_single_precision_stays_within_the_bound_of_an_angle_within_a_turn():
    x = np.random.default_rng(5).uniform(-50, 50, 200).astype(np.float32)
    with tracing(U, 0.0):
        exact = within_turn(with_errors(x, 0))
    error = on_the_circle(within_turn(x).astype(float), x.astype(float))
    bound = U * (exact.errors[..., 0] + np.abs(exact.value))
    assert (error <= C * bound).all()
    assert (C * bound < 1e-3).all()


@pytest.mark.parametrize("begins", [(), (40,)])
def test_single_precision_stays_within_the_bound_of_summed_angles(begins):
    rng = np.random.default_rng(6)
    moves, first = (rng.uniform(-3, 3, s).astype(np.float32) for s in ((100, 4), 4))
    resets = np.isin(np.arange(100), begins)
    with tracing(U, 0.0):
        exact = summed_angles(with_errors(moves, 0), with_errors(first, 0), resets)
    error = on_the_circle(summed_angles(moves, first, resets).astype(float), exact.value)
    bound = C * U * (exact.errors[..., 0] + np.abs(exact.value))
    assert (error <= bound).all()
    assert (bound < 0.02).all()
    if begins:  # what was added before is no longer there
        assert (bound[40:50] < bound[39]).all()


def test_sums_of_angles_without_reduction_have_the_errors_of_their_sizes():
    moves = np.full((100, 1), np.float32(3))
    with tracing(U, 0.0):
        within = summed_angles(with_errors(moves, 0), with_errors([0.0], 0), np.zeros(100, bool))
        plain = plain_angles(with_errors(moves, 0), with_errors([0.0], 0), np.zeros(100, bool))
    assert plain.errors[-1, 0, 0] > within.errors[-1, 0, 0]
    plainly = np.cumsum(moves, axis=0).astype(float)
    error = on_the_circle(plainly, 3.0 * np.arange(1, 101)[:, None])
    assert (error <= C * U * (plain.errors[..., 0] + np.abs(plain.value))).all()
