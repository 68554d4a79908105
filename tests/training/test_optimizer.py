"""AdamW, clipping and the schedule against closed forms; where possible in exact arithmetic."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp

from refssm.training.optimizer import GROUPS, AdamW, ParameterGroup, clipped, cosine, norm

u = 2.0**-53
# with these numbers every operation is exact: moments of a constant gradient are g (1 − 2^-t)
EXACT = AdamW(beta1=0.5, beta2=0.75, epsilon=0.0, decay=0.0)


def run(optimizer, p, gradients, rate=0.25):
    """Parameters after a step with each gradient, all under the name x."""
    parameters, state = {"x": p}, optimizer.start({"x": p})
    for step, g in enumerate(gradients, 1):
        parameters, state = optimizer.update(parameters, {"x": g}, state, step, rate)
    return parameters["x"], state


@pytest.mark.parametrize("steps", [1, 2, 20])
def test_a_constant_gradient_moves_by_the_rate_exactly_whatever_its_size(steps):
    p, g = np.array([1.0, 2.0, -3.0]), np.array([2.0**-30, -4.0, 2.0**20])
    moved, _ = run(EXACT, p, [g] * steps)
    assert moved.tolist() == (p - 0.25 * steps * np.sign(g)).tolist()


def test_the_moments_of_a_constant_gradient_are_known_exactly():
    _, state = run(EXACT, np.zeros(1), [np.array([2.0])] * 10)
    assert state["m.x"].tolist() == [2 * (1 - 0.5**10)]
    assert state["v.x"].tolist() == [4 * (1 - 0.75**10)]


def test_without_a_gradient_only_the_decay_acts_and_it_is_geometric():
    optimizer = replace(EXACT, decay=0.5, epsilon=1.0)
    moved, _ = run(optimizer, np.array([64.0, -3.0]), [np.zeros(2)] * 5)
    assert moved.tolist() == (np.array([64.0, -3.0]) * (1 - 0.25 * 0.5) ** 5).tolist()


def test_the_first_step_is_g_over_g_plus_epsilon_at_any_epsilon():
    optimizer, g = AdamW(epsilon=1e-8, decay=0.1), np.array([1e-8, -3e-9, 5.0])
    moved, _ = run(optimizer, np.ones(3), [g], rate=0.125)
    want = 1 - 0.125 * (g / (np.abs(g) + 1e-8) + 0.1)
    # m/(1−β₁) and v/(1−β₂): 1−β has one rounding each, so 3 and 4 of m̂ and v̂; root, sum, quotient
    assert np.abs(moved - want).max() <= 16 * u


def test_groups_have_their_own_rate_and_some_do_not_decay():
    names = {"weights": "a", "system": "b", "plain": "c"}
    groups = {name: GROUPS[kind] for kind, name in names.items()}
    optimizer = replace(EXACT, decay=0.5, groups=groups)
    p = {name: np.array([8.0]) for name in groups}
    new, _ = optimizer.update(p, {n: np.ones(1) for n in p}, optimizer.start(p), 1, 0.25)
    assert {n: a.item() for n, a in new.items()} == {
        "a": 8 - 0.25 * (1 + 0.5 * 8),
        "b": 8 - 0.25 * 0.25,
        "c": 8 - 0.25,
    }


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_complex_parameter_is_a_pair_of_real_ones_bit_for_bit(kind):
    rng = np.random.default_rng(0)
    pair = rng.standard_normal((3, 4, 2)).astype(kind)
    gradients = rng.standard_normal((6, 3, 4, 2)).astype(kind)
    whole = np.result_type(kind, np.complex64)
    moved, _ = run(AdamW(), pair.view(whole)[..., 0], [g.view(whole)[..., 0] for g in gradients])
    real, _ = run(AdamW(), pair, [*gradients])
    assert moved.dtype == whole
    assert (np.stack([moved.real, moved.imag], axis=-1) == real).all()


def exact(p, gradients, rate, decay):
    """AdamW as in the paper, in 60 digits, from the double precision constants."""
    with mp.workdps(60):
        b1, b2, eps = mp.mpf(0.9), mp.mpf(0.999), mp.mpf(1e-8)
        p, m, v = mp.mpf(p), mp.mpf(0), mp.mpf(0)
        for t, g in enumerate(map(mp.mpf, gradients), 1):
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
            step = (m / (1 - b1**t)) / (mp.sqrt(v / (1 - b2**t)) + eps) + mp.mpf(decay) * p
            p -= mp.mpf(rate) * step
        return float(p)


@pytest.mark.parametrize("seed", range(4))
def test_twenty_steps_are_those_of_the_paper(seed):
    rng = np.random.default_rng(seed)
    gradients, rate, decay = rng.standard_normal(20), 2.0**-6, 2.0**-4
    moved, _ = run(AdamW(decay=decay), np.array([1.5]), gradients[:, None], rate)
    want = exact(1.5, [float(g) for g in gradients], rate, decay)
    # m errs by at most 3 roundings a step of terms whose moduli sum to Σ|g|; 1 − 0.9^t and
    # 1 − 0.999^t lose digits, at most 1/(1 − β) = 10 and 1000 roundings, half of them in the root
    size = np.abs(gradients).max() / np.sqrt((gradients**2).mean())
    charge = 3 * 20 + 10 + 500 + 8
    assert abs(moved[0] - want) <= u * (20 * rate * charge * max(size, 1) * 10 + 3 * 20 * 2)


def test_the_update_does_not_change_what_it_was_given():
    p, g = {"x": np.ones(3)}, {"x": np.ones(3)}
    state = AdamW().start(p)
    AdamW().update(p, g, state, 1, 0.1)
    assert (p["x"] == 1).all()
    assert all((a == 0).all() for a in state.values())


def test_float32_parameters_stay_float32_with_their_moments():
    moved, state = run(AdamW(), np.ones(2, np.float32), [np.ones(2)])
    assert {moved.dtype, *(a.dtype for a in state.values())} == {np.dtype(np.float32)}


def test_the_norm_of_all_gradients_is_in_double_precision_and_counts_both_parts():
    found = norm({"a": np.full((3, 3), 1e30, np.float32), "b": np.array([0j])})
    assert abs(found - 3 * np.float64(np.float32(1e30))) <= 12 * u * 3e30
    assert norm({"a": np.array([3 + 4j]), "b": np.array([12.0])}) == 13
    assert norm({"a": np.zeros((0, 4))}) == 0


def test_clipping_scales_all_gradients_to_the_norm_and_leaves_small_ones():
    large = {"a": np.array([3.0, 0.0]), "b": np.array([4j])}
    assert {n: g.tolist() for n, g in clipped(large, 2.5).items()} == {"a": [1.5, 0], "b": [2j]}
    assert {n: g.tolist() for n, g in clipped(large, 5.0).items()} == {
        n: g.tolist() for n, g in large.items()
    }
    assert clipped({"a": np.zeros(2)}, 1.0)["a"].tolist() == [0, 0]
    assert clipped({"a": np.ones(2, np.float32)}, 0.5)["a"].dtype == np.float32


@pytest.mark.parametrize(
    ("step", "share"), [(1, 1 / 8), (4, 1 / 2), (8, 1.0), (58, 0.5), (108, 0.0), (500, 0.0)]
)
def test_the_rate_grows_linearly_and_falls_along_half_a_cosine(step, share):
    got = cosine(step, rate=16.0, warm_up=8, steps=108, least=0.0)
    assert abs(got - 16 * share) <= 4 * u * 16


def test_the_rate_ends_at_the_least_one_and_needs_no_warm_up():
    assert cosine(100, rate=4.0, warm_up=0, steps=100, least=1.0) == 1.0
    assert abs(cosine(50, rate=4.0, warm_up=0, steps=100, least=1.0) - 2.5) <= 4 * u * 4
    assert cosine(5, rate=4.0, warm_up=5, steps=5) == 4.0  # no step is left for the cosine


def test_the_rate_never_rises_after_the_warm_up():
    rates = [cosine(s, rate=1.0, warm_up=10, steps=200) for s in range(10, 210)]
    assert all(a >= b for a, b in pairwise(rates))
    assert math.isclose(sum(rates[:191]), 190 / 2 + 0.5, rel_tol=191 * 8 * u)  # a symmetric sum


def test_a_group_of_rate_zero_stands_still():
    optimizer = replace(EXACT, groups={"x": ParameterGroup(rate=0.0)})
    assert run(optimizer, np.array([1.5]), [np.ones(1)] * 3)[0].tolist() == [1.5]
