"""Facts about HOPE as a recurrence: taps, filters, rotations, states, gradients, recency biases."""

import numpy as np
import pytest
from recurrences import each_role, each_type, integers, random
from scipy.signal import lfilter

from refssm import hope_stream_stateful_vjp
from refssm.conformance.judging.certificate import expect_vjp
from refssm.conformance.judging.grading import judge
from refssm.conformance.standard import C
from refssm.hope import (
    HOPE_RECENCY_EXPONENTIAL,
    HOPE_RECENCY_POWER,
    HOPE_STEP,
    HOPE_STREAM,
    HOPE_STREAM_STATEFUL,
)
from refssm.hope.allpass import cascade, rotation

U = 2.0**-53
STEPS = [1e-3, 0.05, 0.5, 1.0, 3.0, 100.0]
SIZES = [(1, 1), (3, 7), (7, 3), (5, 40), (40, 5)]
each_step = pytest.mark.parametrize("dt", STEPS)
each_size = pytest.mark.parametrize(("n", "l"), SIZES)


def right(op, result, *args):
    """True if the judge accepts a result as that of `op`; else the test fails."""
    verdict = judge(op, lambda *_: result, *map(np.asarray, args))
    return verdict.ok or pytest.fail(verdict.message)


@each_role
@each_type
@each_size
def test_at_a_step_of_one_it_is_a_filter_of_n_taps_one_step_late(role, dtype, n, l):
    h, u = integers(n + l, (n,), (l,), dtype=dtype)
    one = np.ones((), h.real.dtype)
    taps = np.concatenate([[0], np.convolve(h, u)])[:l]
    assert np.array_equal(HOPE_STREAM.implementation(role)(h, one, u), taps)


@each_role
@each_size
def test_at_a_step_of_one_the_states_are_the_last_inputs_the_newest_first(role, n, l):
    h, u, x0 = integers(1, (n,), (l,), (n,))
    _, x = HOPE_STREAM_STATEFUL.implementation(role)(h, 1.0, u, x0)
    assert np.array_equal(x, np.concatenate([u[::-1], x0])[:n])


@each_role
@each_step
def test_one_parameter_is_an_all_pass_whose_impulse_response_is_known(role, dt):
    k, (rho, _) = np.arange(64), rotation(np.float64(dt))
    K = np.where(k == 0, -rho, (1 - rho**2) * rho ** np.maximum(k - 1.0, 0))
    assert right(HOPE_STREAM, K, [1.0], dt, np.float64(k == 0))
    mirror = HOPE_STREAM.implementation(role)([1.0], dt, np.float64(k == 0))
    assert right(HOPE_STREAM, mirror, [1.0], dt, np.float64(k == 0))


@each_role
@each_step
def test_it_is_a_chain_of_scipys_filters(role, dt):
    h, u = random(2, (6,), (80,))
    s, y, rho = u, np.zeros(80), (1 - dt) / (1 + dt)
    for h_j in h:
        s = lfilter([-rho, 1], [1, -rho], s)
        y += h_j * s
    assert right(HOPE_STREAM, y, h, dt, u)
    assert right(HOPE_STREAM, HOPE_STREAM.implementation(role)(h, dt, u), h, dt, u)


@each_step
def test_two_streams_of_unit_parameters_one_after_the_other_are_one_stream(dt):
    (u,) = random(3, (50,))
    stream, unit = HOPE_STREAM.reference, np.eye(8)
    for i, j in [(0, 0), (1, 2), (3, 3)]:
        twice = stream(unit[i], np.float64(dt), stream(unit[j], np.float64(dt), u))
        assert right(HOPE_STREAM, twice, unit[i + j + 1], dt, u)


@each_step
@each_size
def test_what_went_in_is_in_the_states_or_has_come_out(dt, n, l):
    u, x0 = random(n * l, (l,), (n,))
    s, x = cascade(np.float64(dt), u, x0)
    before = (u**2).sum() + (x0**2).sum()
    after = (s[-1] ** 2).sum() + (x[..., -1] ** 2).sum()
    # a rotation by ρ and c, both within 4u, changes a square by less than 12u relative
    assert abs(after - before) <= 12 * (n + 1) * (l + 1) * U * before


@pytest.mark.parametrize("dt", [0.25, 1.0, 4.0])
def test_a_constant_is_passed_on_and_an_alternating_signal_turned_over(dt):
    h, (rho, c) = np.array([2.0, -1.0, 0.5]), rotation(np.float64(dt))
    constant, alternating = np.ones(9), (-1.0) ** np.arange(9)
    settled = np.full(3, c / (1 - rho))  # the state after an infinite constant input of 1
    assert right(HOPE_STREAM_STATEFUL, (np.full(9, 1.5), settled), h, dt, constant, settled)
    turning = c / (1 + rho) * np.array([-1.0, 1.0, -1.0])
    wanted = (-2.0 - 1.0 - 0.5) * alternating
    assert right(HOPE_STREAM_STATEFUL, (wanted, -turning), h, dt, alternating, turning)


@each_role
@each_type
@each_step
def test_steps_one_after_another_are_the_stream(role, dtype, dt):
    h, u, x0 = random(4, (5,), (12,), (5,), dtype=dtype)
    dt = np.asarray(dt, h.real.dtype)
    y, x = [], x0
    for u_k in u:
        y_k, x = HOPE_STEP.implementation(role)(h, dt, u_k, x)
        y.append(y_k)
    assert right(HOPE_STREAM_STATEFUL, (np.array(y), x), h, dt, u, x0)
    _, whole = HOPE_STREAM_STATEFUL.implementation(role)(h, dt, u, x0)
    assert np.array_equal(x, whole)  # the same rotations in the same order


@each_role
def test_without_parameters_there_is_no_output_and_without_time_the_states_stay(role):
    stateful = HOPE_STREAM_STATEFUL.implementation(role)
    assert HOPE_STREAM.implementation(role)([], 0.5, [1.0, 2.0]).tolist() == [0, 0]
    y, x = stateful([1.0, 2.0], 0.5, [], [3.0, 4.0])
    assert y.shape == (0,)
    assert x.tolist() == [3, 4]


@each_role
@each_size
def test_the_gradient_of_the_states_is_the_hankel_matrix_of_the_parameters(role, n, l):
    h, u, x0, dy = integers(5, (n,), (l,), (n,), (l,))
    vjp = HOPE_STREAM_STATEFUL.vjp(role)
    gradient = vjp(dy, np.zeros(n), h, 1.0, u, x0)[3]
    hankel = [sum(dy[k] * h[i + k] for k in range(min(l, n - i))) for i in range(n)]
    assert gradient.tolist() == hankel


@each_step
def test_a_step_that_is_a_parameter_changes_nothing_where_all_states_are_settled(dt):
    """A constant has gain 1 for every dt: ∂y/∂dt and the part of the states cancel."""
    h, l = np.array([2.0, -1.0, 0.5]), 40
    rho, c = rotation(np.float64(dt))
    arguments = h, np.float64(dt), np.ones(l), np.full(3, c / (1 - rho))  # 1/√dt
    cotangents = [np.ones(l), np.zeros(3)]
    _, ddt, _, dx0 = hope_stream_stateful_vjp(cotangents[0], cotangents[1], *arguments)
    gauges = expect_vjp(HOPE_STREAM_STATEFUL, cotangents, [*map(np.asarray, arguments)], {})
    slope = 0.5 * dt**-1.5  # derivative of −1/√dt: the constant states change, too
    assert abs(ddt - (dx0 * slope).sum()) <= C * U * (gauges[1].k0 + (gauges[3].k0 * slope).sum())
    assert abs(ddt) > C * U * gauges[1].k0  # the two parts are not 0


@pytest.mark.parametrize("dt", [1e-3, 1e-2, 1.0])
def test_in_single_precision_the_kernel_keeps_its_digits(dt):
    n, l = 128, 2048
    (h,) = random(6, (n,), dtype="float32")
    stream = HOPE_STREAM.implementation("jit")
    impulse = (np.arange(l) == 0).astype(np.float32)
    single = stream(h, np.float32(dt), impulse)
    double = stream(h.astype(float), np.float64(np.float32(dt)), impulse.astype(float))
    # required: 1e-6 of the largest entry at dt = 1e-3; at 0.1 it is 5e-6
    assert np.abs(single - double).max() <= 1e-6 * np.abs(double).max()


@each_role
def test_a_power_weighs_by_the_index_from_one_and_an_exponential_from_zero(role):
    power = HOPE_RECENCY_POWER.implementation(role)
    exponential = HOPE_RECENCY_EXPONENTIAL.implementation(role)
    h = np.array([8.0, 8.0, 8.0, 8.0])
    assert power(h, 0.0).tolist() == exponential(h, 0.0).tolist() == h.tolist()
    assert right(HOPE_RECENCY_POWER, 8 / np.arange(1.0, 5), h, -1.0)
    assert right(HOPE_RECENCY_POWER, power(h, -1.0), h, -1.0)
    halved = np.array([8.0, 4.0, 2.0, 1.0])
    rate = np.log(2)  # rounded, and so are its powers, within the judge's tolerance
    assert right(HOPE_RECENCY_EXPONENTIAL, halved, h, rate)
    assert right(HOPE_RECENCY_EXPONENTIAL, exponential(h, rate), h, rate)


@each_role
def test_a_batch_of_steps_and_of_parameters_is_what_each_is_alone(role):
    h, u, x0 = random(7, (3, 4), (2, 3, 9), (2, 1, 4))
    dt = np.array([0.1, 1.0, 7.0])
    y, x = HOPE_STREAM_STATEFUL.implementation(role)(h, dt, u, x0)
    assert y.shape == (2, 3, 9)
    for b in range(2):
        for d in range(3):
            alone = HOPE_STREAM_STATEFUL.implementation(role)(h[d], dt[d], u[b, d], x0[b, 0])
            assert right(HOPE_STREAM_STATEFUL, alone, h[d], dt[d], u[b, d], x0[b, 0])
            assert np.array_equal(alone[1], x[b, d])
