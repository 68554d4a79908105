"""Facts about the systems that HOPE samples, and about the length of their memory."""

from typing import Any

import numpy as np
import pytest
from recurrences import random
from scipy.signal import cont2discrete, dlsim, lsim

import refssm
from refssm.conformance.judging.grading import judge
from refssm.hope import HOPE_STREAM, HOPE_STREAM_STATEFUL

matrices: Any = cont2discrete  # SciPy does not say the type of its result
U = 2.0**-53
STEPS = [0.05, 0.5, 1.0, 4.0]
each_step = pytest.mark.parametrize("dt", STEPS)


def response(A, B, C, D, u):
    """SciPy's output of x_{k+1} = A x_k + B u_k, y_k = C x_k + D u_k."""
    system = A, np.reshape(B, (-1, 1)), np.reshape(C, (1, -1)), np.reshape(D, (1, 1)), 1.0
    return dlsim(system, u)[1].ravel()


@each_step
def test_the_discrete_system_is_the_stream(dt):
    h, u = random(1, (6,), (60,))
    y = response(*refssm.hope_system_discrete(h, dt), u)
    verdict = judge(HOPE_STREAM, lambda *_: y, h, np.array(dt), u)
    assert verdict.ok, verdict.message


@each_step
def test_its_states_are_those_of_the_stream_before_a_step(dt):
    h, u, x0 = random(2, (4,), (1,), (4,))
    A, B, C, D = refssm.hope_system_discrete(h, dt)
    wanted = C @ x0 + D * u, A @ x0 + B * u[0]
    verdict = judge(HOPE_STREAM_STATEFUL, lambda *_: wanted, h, np.array(dt), u, x0)
    assert verdict.ok, verdict.message


@each_step
def test_the_bilinear_map_of_step_2dt_makes_the_stream_of_the_continuous_system(dt):
    h, u = random(3, (6,), (60,))
    A, B, C, D = refssm.hope_system(h)
    columns = A, B[:, None], C[None], np.array([[D]])
    A_d, B_d, C_d, D_d, _ = matrices(columns, 2 * dt, "bilinear")
    y = response(A_d, B_d, C_d, D_d, u)
    verdict = judge(HOPE_STREAM, lambda *_: y, h, np.array(dt), u)
    assert verdict.ok, verdict.message


def test_the_inverse_bilinear_map_of_the_shift_is_the_continuous_system():
    (h,) = integers_of(5)
    shift, first = np.eye(5, k=-1), np.eye(5)[0]
    A, B, C, D = refssm.inverse_bilinear(shift, first, h, 0.0, 2.0)
    wanted = refssm.hope_system(h)
    assert np.array_equal(A, wanted[0])  # integers
    assert wanted[3] == D
    for got, want in [(B, wanted[1]), (C, wanted[2])]:
        assert (np.abs(got / np.sqrt(2) - want / np.sqrt(2)) <= 4 * U * np.abs(want)).all()


def integers_of(n):
    return (np.random.default_rng(4).integers(-8, 9, n).astype(float),)


@each_step
def test_the_inverse_map_undoes_the_map_whatever_the_system_is(dt):
    h = np.array([1.0, -2.0, 0.5])
    A, B, C, D = refssm.inverse_bilinear(*refssm.hope_system_discrete(h, dt), 2 * dt)
    wanted = refssm.hope_system(h)
    # (A + I)⁻¹ is used at most twice: its condition number times n roundings each
    discrete = refssm.hope_system_discrete(h, dt)[0]
    room = 64 * 3 * U * np.linalg.cond(discrete + np.eye(3)) * max(1, 1 / dt)
    for got, want in zip((A, B, C, D), wanted, strict=True):
        assert np.abs(got - want).max() <= room * max(1, np.abs(want).max())


@each_step
def test_white_inputs_leave_uncorrelated_states_and_outputs_the_hankel_matrix(dt):
    """The gramians are I and HᴴH: Hankel singular values are those of H, for every dt."""
    n = 6
    (h,) = random(5, (n,))
    A, B, C, _ = refssm.hope_system_discrete(h, dt)
    H = [[h[i + j] if i + j < n else 0.0 for j in range(n)] for i in range(n)]
    Q = np.array(H).T @ np.array(H)
    # entries of A, B, C have errors of at most (n + 5) u, products of three 2n u, Q n u
    moduli = np.abs(A).T @ np.abs(Q) @ np.abs(A) + np.outer(np.abs(C), np.abs(C)) + np.abs(Q)
    sums = np.abs(np.array(H)).T @ np.abs(np.array(H))
    room = (4 * n + 10) * U * (moduli + np.abs(A).T @ sums @ np.abs(A) + sums)
    gap = A.T @ Q @ A + np.outer(C, C) - Q
    lost = np.abs(C).max() * np.abs(h).sum() * (n + 5) * U  # cancellation within C
    assert (np.abs(gap) <= room + 4 * n * lost).all()
    ones = (4 * n + 10) * U * (np.abs(A) @ np.abs(A).T + np.outer(np.abs(B), np.abs(B)) + np.eye(n))
    assert (np.abs(A @ A.T + np.outer(B, B) - np.eye(n)) <= ones).all()


def test_the_continuous_system_forgets_at_one_rate_whatever_the_parameters_are():
    A, _, _, _ = refssm.hope_system(random(6, (5,))[0])
    assert np.array_equal(np.diag(A), -np.ones(5))
    assert np.array_equal(A, np.tril(A))
    t = np.linspace(0, 40, 401)
    columns = A, np.eye(5)[:, :1], np.eye(5), np.zeros((5, 1))
    _, x, _ = lsim(columns, np.zeros_like(t), t, np.array([1.0, 0, 0, 0, 0]))
    # L_j(2t) e^{−t}: at most (2t)^4/4! etc. times e^{−t}
    grown = sum(2.0**j * t**j * 5 for j in range(5)) * np.exp(-t)
    assert (np.abs(x).max(-1) <= grown).all()


@each_step
def test_the_tail_is_the_norm_of_the_kernel_from_there_on(dt):
    (h,) = random(7, (4,))
    impulse = np.arange(4000) == 0
    K = refssm.hope_stream(h, dt, impulse.astype(float)).astype(np.longdouble)
    kept = np.sqrt((K**2).sum())
    for l in (1, 2, 10, 30):
        tail = float(np.sqrt((K[l:] ** 2).sum()))
        # K has errors of 16u relative to the largest states; so have the states at l
        assert abs(refssm.hope_tail(h, dt, l=l) - tail) <= 64 * 4 * U * np.abs(h).sum() * kept
    with pytest.raises(ValueError, match="hope_tail: `l` must be an integer >= 1, got 0"):
        refssm.hope_tail(h, dt, l=0)


@each_step
def test_delays_are_those_of_the_phase_and_their_mean_is_one(dt):
    angles = 2 * np.pi * (np.arange(4096) + 0.5) / 4096
    delays = refssm.hope_delay(dt, angles)
    rho = (1 - dt) / (1 + dt)
    poisson = (1 - rho**2) / (1 - 2 * rho * np.cos(angles) + rho**2)
    assert (np.abs(delays - poisson) <= 64 * U * delays * max(dt, 1 / dt)).all()
    # aliasing of the trapezoidal rule: 2 Σ ρ^(4096 m), invisible in double precision
    assert abs(delays.mean() - 1) <= 64 * U * max(dt, 1 / dt)
    assert abs(refssm.hope_delay(dt, 0.0) * dt - 1) <= 4 * U  # two squares and quotients


def test_the_bounds_of_the_step_make_windows_of_n_and_of_l_steps():
    for n, l in [(64, 1024), (16, 16), (32, 8), (5, 8192)]:
        least, largest = refssm.hope_step_bounds(n, l)
        assert refssm.hope_window(n, largest) == n
        assert refssm.hope_window(n, least) == max(n, l)
    assert refssm.hope_step_bounds(64, 0) == (1.0, 1.0)


def test_a_slow_pulse_arrives_after_its_window():
    """A pulse over many steps leaves n stages with step size dt n/dt steps later."""
    n, dt, k = 8, 0.125, np.arange(400)
    pulse = np.exp(-(((k - 150) / 40.0) ** 2))
    out = refssm.hope_stream(np.eye(n)[-1], dt, pulse)
    centre = (k * out).sum() / out.sum() - (k * pulse).sum() / pulse.sum()
    assert abs(centre - refssm.hope_window(n, dt)) < 1  # the pulse's tails end with the signal


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("hope_system_discrete", lambda dt: refssm.hope_system_discrete([1.0, 2.0], dt)),
        ("inverse_bilinear", lambda dt: refssm.inverse_bilinear([[0.5]], [1.0], [1.0], 0.0, dt)),
        ("hope_delay", lambda dt: refssm.hope_delay(dt, 0.0)),
        ("hope_window", lambda dt: refssm.hope_window(4, dt)),
        ("hope_tail", lambda dt: refssm.hope_tail([1.0, 2.0], dt, l=2)),
    ],
)
@pytest.mark.parametrize("dt", [0.0, -1.0, float("nan")])
def test_a_step_that_is_not_above_0_is_refused(name, call, dt):
    with pytest.raises(ValueError, match=f"^{name}: `dt` must be above 0, got {dt}"):
        call(dt)
