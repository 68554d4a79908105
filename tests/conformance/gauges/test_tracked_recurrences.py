"""Error rules of a state in units of e^m, and of oscillators."""

# pyright: reportAttributeAccessIssue=false
# (tracked arrays come back where tracked arrays go in, which pyright cannot see)

import numpy as np
import pytest

from refssm._numerics.scales import as_excess, as_scale, in_units
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
