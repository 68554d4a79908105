"""How far transfer functions move: the bounds hold, are attained, and raise where undefined."""

import numpy as np
import pytest

from refssm import (
    hope_transfer,
    markov_perturbation_bound,
    pole_perturbation_bound,
    residue_perturbation_bound,
)

NODES = 257
u = 2.0**-53


def largest(w, v, s):
    """max |Σ_j v_j/(s − w_j)| over the nodes."""
    return np.abs((v / (s[:, None] - w)).sum(-1)).max()


def slack(terms, value):
    """Error of a sum of `terms` terms with total modulus up to `value`, a few roundings each."""
    return (terms + 8) * u * value


def systems(count, n):
    for seed in range(count):
        rng = np.random.default_rng(seed)
        w = -rng.uniform(0.1, 2, n) + 1j * rng.normal(0, 3, n)
        v = rng.standard_normal(n) + 1j * rng.standard_normal(n)
        s = 1j * np.concatenate([w.imag, np.linspace(-10, 10, NODES)])
        yield rng, w, v, s


@pytest.mark.parametrize("n", [1, 2, 7])
def test_no_change_of_poles_moves_the_transfer_function_beyond_the_bound(n):
    for rng, w, v, s in systems(40, n):
        delta = rng.uniform(0, 0.99) * np.abs(w.real).min()
        moved = w + delta * np.exp(2j * np.pi * rng.random(n))
        reached = np.abs((v / (s[:, None] - moved) - v / (s[:, None] - w)).sum(-1)).max()
        sizes = (np.abs(v) / (np.abs(w.real) - delta)).sum()
        assert reached <= pole_perturbation_bound(w, v, np.ones(n), delta) + slack(n, 2 * sizes)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_no_change_of_residues_moves_the_transfer_function_beyond_the_bound(n):
    for rng, w, _, s in systems(40, n):
        moved = 0.3 * np.exp(2j * np.pi * rng.random(n))
        bound = residue_perturbation_bound(w, 0.3)
        assert largest(w, moved, s) <= bound + slack(n, bound)


@pytest.mark.parametrize("n", [1, 4, 64])
def test_equal_poles_reach_the_bounds(n):
    w, delta, s = np.full(n, -0.5 + 2j), 0.125, np.array([2j])  # exact: powers of 2
    reached = n * abs(1 / (s[0] - w[0] - delta) - 1 / (s[0] - w[0]))
    assert abs(pole_perturbation_bound(w, np.ones(n), np.ones(n), delta) - reached) <= slack(
        1, 4 * n
    )
    assert residue_perturbation_bound(w, delta) == largest(w, np.full(n, delta), s)


def test_one_pole_towards_the_axis_and_one_residue_reach_an_nth_of_the_bounds():
    for _, w, v, _ in systems(40, 5):
        rates, delta = np.abs(w.real), 0.5 * np.abs(w.real).min()
        j, k = (np.abs(v) / (rates * (rates - delta))).argmax(), rates.argmin()
        reached = abs(v[j] / (rates[j] - delta) - v[j] / rates[j])
        bound = pole_perturbation_bound(w, v, np.ones(5), delta) / 5
        assert abs(reached - bound) <= slack(1, 2 * abs(v[j]) / (rates[j] - delta))
        bound = residue_perturbation_bound(w, delta) / 5
        assert abs(delta / rates[k] - bound) <= slack(1, bound)


def test_without_the_change_in_the_denominator_it_is_no_bound():
    """The pole −1 moved to −1/2 moves G(0) from 1 to 2; to first order that is 1/2."""
    w, v, delta = np.array([-1.0]), np.ones(1), 0.5
    moved = abs((v / -(w + delta) - v / -w).sum())
    assert moved == pole_perturbation_bound(w, v, np.ones(1), delta) == 1
    assert moved > delta * v[0] / w[0] ** 2


def test_the_bounds_of_the_theory_are_what_is_left_for_small_changes():
    w, v = np.array([-0.5, -2.0 + 3j]), np.array([1.0, -8.0])
    worst = 2 * np.array([1.0, 8.0]) / np.array([0.5, 2.0]) ** 2  # n |b c| / |Re a|²
    for delta in 2.0 ** -np.arange(10, 50, 10):
        bound = pole_perturbation_bound(w, v, np.ones(2), delta) / delta
        # 1/(r − Δ) − 1/r = Δ/(r (r − Δ)) and r ≥ ½: the quotient is at most 1/(1 − 2Δ)
        assert worst.max() <= bound <= worst.max() / (1 - 2 * delta) * (1 + 8 * u)


@pytest.mark.parametrize("dt", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("n", [1, 16])
def test_markov_parameters_move_the_transfer_function_within_the_bound_at_every_dt(n, dt):
    rng = np.random.default_rng(n)
    for _ in range(20):
        dh = rng.standard_normal(n)
        reached = np.abs(hope_transfer(dh, dt, l=128)).max()
        assert reached <= markov_perturbation_bound(dh) + slack(n, np.abs(dh).sum())
    alike = np.full(n, 0.25)
    # at ω = 1 all z' are 1: the sum, and √n ‖Δh‖ = n/4
    assert abs(hope_transfer(alike, dt, l=128)[0]) == n / 4 == markov_perturbation_bound(alike)


def test_leading_axes_broadcast_and_an_empty_system_does_not_move():
    w, delta = -np.ones((3, 1, 4)), np.array([0.1, 0.2])
    assert pole_perturbation_bound(w, np.ones(4), np.ones(4), delta).shape == (3, 2)
    assert residue_perturbation_bound(w, delta).shape == (3, 2)
    assert markov_perturbation_bound(np.ones((3, 2, 4))).shape == (3, 2)
    none = np.zeros(0)
    assert pole_perturbation_bound(none, none, none, 0.5) == 0
    assert residue_perturbation_bound(none, 0.5) == 0
    assert markov_perturbation_bound(none) == 0


REFUSED = {
    "a pole on the axis": lambda: pole_perturbation_bound([0.0], [1.0], [1.0], 0.0),
    "a pole that reaches the axis": lambda: pole_perturbation_bound([-1.0], [1.0], [1.0], 1.0),
    "a negative change of poles": lambda: pole_perturbation_bound([-1.0], [1.0], [1.0], -0.1),
    "a change that is no number": lambda: pole_perturbation_bound([-1.0], [1.0], [1.0], np.nan),
    "an unstable pole": lambda: residue_perturbation_bound([1.0], 0.1),
    "a negative change of residues": lambda: residue_perturbation_bound([-1.0], -0.1),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_bound_is_refused(what):
    with pytest.raises(ValueError, match=r"perturbation_bound: `(w|delta)` must"):
        REFUSED[what]()
