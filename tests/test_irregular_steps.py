"""Irregular sampling: one signal, constant between its knots, on several time grids."""

import numpy as np
import pytest
from mpmath import mp
from recurrences import each_role, integers, random

from refssm.conformance.gauges.gauge import Gauge, gauges
from refssm.conformance.judging.grading import compare
from refssm.discretize import DISCRETIZE_DIAGONAL_ZOH, discretize_diagonal_zoh
from refssm.scan import DIAGONAL_SSM, DIAGONAL_SSM_VARYING, LINEAR_SCAN

KNOTS = np.array([0, 1, 4, 6, 7, 12, 13, 16])  # the signal is constant between them
GRIDS = {
    "knots": KNOTS,
    "every": np.arange(17),
    "finer": np.arange(0, 16.5, 0.5),
    "mixed": np.array([0, 0.5, 1, 2, 4, 4.5, 6, 7, 10, 12, 12.5, 13, 15.5, 16]),
}
each_grid = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)


def held(u, grid):
    """The step sizes of a grid, and the signal's value on each step."""
    steps, middle = np.diff(grid), (grid[1:] + grid[:-1]) / 2
    return steps, u[np.searchsorted(KNOTS, middle) - 1]


def at_knots(x, grid):
    """The states at the knots after the first; all grids contain the knots."""
    return x[np.searchsorted(grid[1:], KNOTS[1:])]


def halving(u, grid, role):
    """The states of x' = log 4 · (u − x): a = 4^−dt, B̄ = 1 − 4^−dt, all dyadic numbers."""
    steps, inputs = held(u, grid)
    a = 4.0 ** -steps[:, None]
    eye = np.eye(u.shape[1])
    system = DIAGONAL_SSM_VARYING.implementation(role)
    return system(a * np.ones_like(inputs), eye, eye, 0 * eye, (1 - a) * inputs)


@each_role
@each_grid
def test_states_of_a_decay_by_halves_agree_exactly_where_grids_meet(role, grid):
    (u,) = integers(1, (7, 2))
    x = halving(u, KNOTS, role)
    assert x[-1].all()
    assert np.array_equal(at_knots(halving(u, grid, role), grid), x)


@each_role
@each_grid
def test_a_decay_to_zero_forgets_and_an_integrator_counts_on_every_grid(role, grid):
    (u,) = integers(2, (7, 1))
    steps, inputs = held(u, grid)
    system, one = DIAGONAL_SSM_VARYING.implementation(role), np.ones((1, 1))
    a, B_bar = discretize_diagonal_zoh([0.0], one, steps[:, None])
    x = at_knots(system(a, one, one, 0 * one, B_bar[:, 0] * inputs), grid)
    assert np.array_equal(x[:, 0], np.cumsum(np.diff(KNOTS) * u[:, 0]))
    latest = system(0 * a, one, one, 0 * one, inputs)
    assert np.array_equal(at_knots(latest, grid), u)


def true_states(w, B, u):
    """x(t) at the knots after the first, from the integral, rounded once."""
    with mp.workdps(50):
        x, states = [mp.mpc(0)] * len(w), []
        for k, dt in enumerate(np.diff(KNOTS)):
            drive = [
                mp.fsum(mp.mpc(b) * mp.mpf(v) for b, v in zip(row, u[k], strict=True)) for row in B
            ]
            for n, pole in enumerate(map(mp.mpc, w)):
                x[n] = mp.exp(int(dt) * pole) * x[n] + mp.expm1(int(dt) * pole) / pole * drive[n]
            states.append([complex(y) for y in x])
    return np.array(states)


def sampled(w, B, steps, inputs):
    """The states on a grid: zero-order hold of each step, then the scan."""
    a, B_bar = DISCRETIZE_DIAGONAL_ZOH.reference(w, B, steps)
    return LINEAR_SCAN.reference(a, np.einsum("lnm,lm->ln", B_bar, inputs))


def one_for_all(w, B, steps, inputs):
    """The same, but with the B̄ of the first step size for all steps."""
    a, B_bar = DISCRETIZE_DIAGONAL_ZOH.reference(w, B, steps)
    return LINEAR_SCAN.reference(a, np.einsum("nm,lm->ln", B_bar[0], inputs))


@each_grid
def test_states_agree_with_the_integral_on_every_grid(grid):
    w, B = random(3, (3,), (3, 2), dtype="complex128")
    (u,) = random(4, (7, 2))
    w = -np.abs(w.real) / 4 + 2j * w.imag
    steps, inputs = held(u, grid)
    steps = np.repeat(steps[:, None], 3, axis=1)
    x = at_knots(sampled(w, B, steps, inputs), grid)
    # the tolerance of discretization and scan together
    (traced,) = gauges(sampled, w, B, steps, inputs, unit=2.0**-53)
    k0, k1 = at_knots(traced.k0, grid), at_knots(traced.k1, grid)
    wanted = Gauge(true_states(w, B, u), k0, k1, traced.peak)
    assert compare(x, wanted, x.dtype).grade == "A"
    same_for_all = at_knots(one_for_all(w, B, steps, inputs), grid)
    assert compare(same_for_all, wanted, x.dtype).ok == (len(set(steps[:, 0])) == 1)


@each_role
def test_equal_steps_are_the_time_invariant_system(role):
    (w,), (B, C, u) = random(5, (3,)), random(6, (3, 2), (2, 3), (9, 2))
    steps = np.full((9, 3), 0.25)
    a, B_bar = discretize_diagonal_zoh(-np.abs(w), B, steps)
    assert np.array_equal(a, np.tile(a[0], (9, 1)))
    y = DIAGONAL_SSM.implementation(role)(a[0], B_bar[0], C, np.zeros((2, 2)), u)
    again = DIAGONAL_SSM_VARYING.implementation(role)(a, B_bar[0], C, np.zeros((2, 2)), u)
    assert np.array_equal(again, y)


@each_role
def test_a_step_of_no_time_changes_nothing(role):
    grid = GRIDS["every"]
    (u,) = integers(7, (7, 2))
    doubled = np.sort(np.concatenate([grid, KNOTS[1:]]))  # each knot twice
    steps, inputs = held(u, grid)
    a = 4.0 ** -np.diff(doubled)[:, None] * np.ones(2)
    b = np.zeros((len(a), 2))
    b[np.diff(doubled) > 0] = (1 - 4.0 ** -steps[:, None]) * inputs
    x = LINEAR_SCAN.implementation(role)(a, b)
    assert np.array_equal(x[np.diff(doubled) > 0], halving(u, grid, role))
