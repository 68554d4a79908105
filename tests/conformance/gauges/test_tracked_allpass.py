"""The bound of a cascade of all-passes holds, and does not grow with the moduli."""

# pyright: reportAttributeAccessIssue=false
# (tracked arrays come back where tracked arrays go in, which pyright cannot see)

import numpy as np
import pytest

from refssm.conformance.gauges.tracked import Tracked, lifted, tracing
from refssm.conformance.standard import C
from refssm.hope.allpass import cascade

U, U_DOUBLE = 2.0**-24, 2.0**-53
STEPS = [1e-3, 0.1, 0.6, 1.0, 3.0, 50.0]
each_step = pytest.mark.parametrize("dt", STEPS)


def drawn(seed, n, l):
    """Single precision numbers in double precision: exact inputs for both."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(k).astype(np.float32) for k in (l, n)]


def traced(dt, u, x0):
    """Signals and states with their errors, in units of single precision."""
    with tracing(U, 0.0):
        return cascade(*(lifted(np.asarray(a, float)) for a in (dt, u, x0)))


@each_step
@pytest.mark.parametrize("wave", ["normal", "constant", "impulse"])
def test_single_precision_stays_within_the_bound_in_two_arrangements(dt, wave):
    u, x0 = drawn(1, 24, 200)
    u = {"normal": u, "constant": 0 * u + 1, "impulse": np.float32(np.arange(200) == 0)}[wave]
    dt = np.float32(dt)
    exact = traced(dt, u, x0)
    rotated = cascade(dt, u, x0)
    rho = (1 - dt) / (1 + dt)
    c = 2 / (1 / np.sqrt(dt) + np.sqrt(dt))
    for got in (rotated, _other_order(rho, c, u, x0)):
        for value, bound in zip(got, exact, strict=True):
            assert value.dtype == np.float32
            error = np.abs(value.astype(float) - bound.value)
            assert (error <= C * U * (bound.errors[..., 0] + np.abs(bound.value))).all()


def _other_order(rho, c, u, x0):
    """Step by step in time, with another formula for c."""
    s = np.zeros((len(x0) + 1, len(u)), np.float32)
    x = np.zeros((len(x0), len(u) + 1), np.float32)
    s[0], x[:, 0] = u, x0
    for k in range(len(u)):
        for j in range(len(x0)):
            x[j, k + 1] = c * s[j, k] + rho * x[j, k]
            s[j + 1, k] = c * x[j, k] - rho * s[j, k]
    return s, x


@each_step
def test_it_grows_no_faster_than_the_square_of_the_stages(dt):
    """Operation by operation, the bound would be (1 + 2|ρ|)^n: 1e22 for 48 stages and ρ = 0.95."""
    u, x0 = drawn(2, 48, 64)
    few, many = (traced(dt, u, x0[:n])[0].errors[n, :, 0].max() for n in (12, 48))
    assert many <= 16 * few


@each_step
def test_the_errors_of_u_and_of_x0_are_carried_in_norm(dt):
    u, x0 = (a.astype(float) for a in drawn(3, 5, 30))
    off = Tracked(u, np.stack([0 * u, np.full(30, 1e6)], axis=-1))
    with tracing(U_DOUBLE, 0.0):
        s, x = cascade(lifted(np.float64(dt)), off, lifted(x0))
        _, started = cascade(lifted(np.float64(dt)), lifted(u), Tracked(x0, np.full((5, 2), 1e6)))
    so_far = 1e6 * np.sqrt(np.arange(1, 31))
    assert (s.errors[0, :, 1] == 1e6).all()
    assert (s.errors[1:, :, 1] >= so_far).all()
    assert (s.errors[1:, :, 1] <= so_far + s.errors[1:, :, 0]).all()
    assert (x.errors[:, 0, 1] == 0).all()
    assert (started.errors[:, 0, 0] == 1e6).all()
    assert (started.errors[:, 1:, 0] >= 1e6 * np.sqrt(5)).all()


@each_step
def test_the_error_of_the_step_is_carried_by_the_largest_slope_so_far(dt):
    u, x0 = (a.astype(float) for a in drawn(4, 4, 25))
    step = dt * 1e-6
    ahead, behind = (cascade(np.float64(dt + h), u, x0) for h in (step, -step))
    with tracing(U_DOUBLE, 0.0):
        off = Tracked(np.float64(dt), np.array([0.0, 1e12]))
        got = cascade(off, lifted(u), lifted(x0))
    for tracked, p, q in zip(got, ahead, behind, strict=True):
        slope = np.maximum.accumulate(np.abs(p - q) / (2 * step), axis=-1)
        # a central difference: h² ∂³/6 of a function with rate n/dt, and rounding errors over h
        room = (4 * 4 * 1e-6 + 1e-6) * (slope.max() + 1) + tracked.errors[..., 0] / 1e12
        carried = (tracked.errors[..., 1] - tracked.errors[..., 0]) / 1e12
        assert (np.abs(carried - slope) <= room).all()


def test_nan_in_the_step_leaves_no_bound_and_nothing_raises():
    u, x0 = (a.astype(float) for a in drawn(5, 3, 4))
    with tracing(U_DOUBLE, 0.0):
        s, _ = cascade(lifted(np.float64(np.nan)), lifted(u), lifted(x0))
    assert np.isnan(s.value[1:]).all()
    assert np.isnan(s.errors[1:, :, 0]).all()
