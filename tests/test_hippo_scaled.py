"""Facts of steps of a scaled memory: means, order, which maps of time, and messages."""

import numpy as np
import pytest

import refssm
from refssm.conformance.judging.grading import judge
from refssm.hippo import HIPPO_SCALED_BACKWARD, HIPPO_SCALED_BILINEAR, HIPPO_SCALED_EULER

U = 2.0**-53
RULES = {
    "euler": HIPPO_SCALED_EULER,
    "bilinear": HIPPO_SCALED_BILINEAR,
    "backward": HIPPO_SCALED_BACKWARD,
}


def step(rule):
    return getattr(refssm, f"hippo_scaled_{rule}")


def legs(n):
    return refssm.hippo_legs(n=n)


def run(rule, A, B, x, u, times, p):
    """The state after a step for each sample of one signal."""
    for u_k, time in zip(u, times, strict=True):
        x = step(rule)(A, B, x, [u_k], float(time), p=p)
    return x


def test_the_first_coefficient_by_euler_is_the_running_mean():
    u = np.array([3.0, 5.0, -2.0, 4.0, 2.5, 1.0, -7.0, 8.0])
    x = run("euler", [[-1.0]], [1.0], np.zeros((1, 1)), u, np.arange(1, 9), 1.0)
    # a mean by steps: three roundings each, of numbers of at most 8
    assert abs(x[0, 0] - u.mean()) <= 3 * 8 * 8 * U


def test_the_first_coefficient_by_backward_euler_and_the_bilinear_rule_by_hand():
    # x = (t x + u)/(t + 1) and ((2t − 1) x + 2u)/(2t + 1), all numbers of few bits
    made = ([[-1.0]], [1.0], [[3.0]], [7.0])
    assert refssm.hippo_scaled_backward(*made, 3.0, p=1.0) == (3 * 3 + 7) / 4
    assert refssm.hippo_scaled_bilinear(*made, 3.5, p=1.0) == (6 * 3 + 2 * 7) / 8
    assert refssm.hippo_scaled_backward(*made, 6.0, p=0.5) == (3 * 3 + 7) / 4


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize(("rule", "order"), [("euler", 1), ("backward", 1), ("bilinear", 2)])
def test_the_error_of_a_rule_falls_with_its_order(rule, order, m, p):
    """u = (t/l)^m has the states (t/l)^m c with p m c = A c + B, from t = l to 2 l."""
    n = 5
    A, B = legs(n)
    c = np.linalg.solve(p * m * np.eye(n) - A, B)[:, None]
    at = {"euler": 0.0, "backward": 1.0, "bilinear": 0.5}[rule]
    errors = []
    for l in (64, 128, 256):
        t = l + np.arange(l) + at
        errors.append(np.abs(run(rule, A, B, c, (t / l) ** m, t, p) - c * 2.0**m).max())
    if m < 2:  # a line is exact: n products of entries below 2n in each of 256 steps
        assert max(errors) <= 256 * 2 * n * n * U * 2 * np.abs(c).max()
        return
    rates = np.log2(np.divide(errors[:-1], errors[1:]))
    # the next term of the error is 1/l of the first, times at most n: half an order is far off
    assert (np.abs(rates - order) < 0.25).all()


def test_with_the_time_of_the_end_of_a_step_the_bilinear_rule_is_of_first_order():
    n, m = 5, 2
    A, B = legs(n)
    c = np.linalg.solve(m * np.eye(n) - A, B)[:, None]
    errors = []
    for l in (64, 128, 256):
        t = l + np.arange(l)
        errors.append(np.abs(run("bilinear", A, B, c, ((t + 0.5) / l) ** m, t + 1, 1.0) - 4 * c))
    largest = [e.max() for e in errors]
    assert (np.abs(np.log2(np.divide(largest[:-1], largest[1:])) - 1) < 0.25).all()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("p", [0.5, 1.0, 2.0])
def test_the_memory_of_a_map_of_time_is_legs_of_the_mapped_signal(rule, p):
    """With t = s^p, u(t) = s^{pm}: the last state is that of LegS, to the error of the rule."""
    n, l, m = 4, 4000, 2
    A, B = legs(n)
    t = np.arange(1, l + 1.0)
    x = run(rule, A, B, np.zeros((n, 1)), (t / l) ** m, t, p)
    s = (np.arange(1 << 14) + 0.5) / (1 << 14)
    wanted = np.zeros(n)
    for i in range(n):
        P = np.polynomial.legendre.Legendre.basis(i)(2 * s - 1) * np.sqrt(2 * i + 1)
        wanted[i] = (s ** (p * m) * P).mean()
    # first order: h L with h = 1/(p l), L the size of A's products, n² times the states
    assert np.abs(x[:, 0] - wanted).max() <= 2 * n * n / (p * l)


@pytest.mark.parametrize("rule", RULES)
def test_a_time_that_is_constant_makes_the_rules_of_a_constant_system(rule):
    """t = log s has h = 1: S4's fading memory, whose step is `discretize_…` with dt = 1."""
    n = 4
    A, B = legs(n)
    x, u = np.random.default_rng(0).standard_normal((n, 3)), np.array([1.0, -2.0, 0.5])
    A_bar, B_bar = getattr(refssm, f"discretize_{rule}")(A, B[:, None], 0.5)
    ours = judge(
        RULES[rule], lambda *_, **__: A_bar @ x + B_bar * u, A, B, x, u, np.array(4.0), p=0.5
    )
    assert ours.ok


def test_euler_grows_before_t_is_half_of_n_and_the_others_do_not():
    n = 16
    A, B = legs(n)
    x = np.eye(n)[:, -1:]  # the mode of LegS that forgets fastest, with the eigenvalue −n
    grown = refssm.hippo_scaled_euler(A, B, x, [0.0], 2.0, p=1.0)
    assert np.array_equal(grown, (1 - n / 2) * x)
    for rule in ("bilinear", "backward"):
        assert np.linalg.norm(step(rule)(A, B, x, [0.0], 2.0, p=1.0)) < 1


def test_what_is_no_power_of_time_is_told():
    with pytest.raises(ValueError, match="hippo_scaled_euler: `p` must be a number above 0, got 0"):
        refssm.hippo_scaled_euler([[-1.0]], [1.0], [[0.0]], [1.0], 1.0, p=0)


def test_a_singular_step_is_told_with_its_size():
    with pytest.raises(np.linalg.LinAlgError, match=r"hippo_scaled_backward: .* at dt = 0\.5"):
        refssm.hippo_scaled_backward([[2.0]], [1.0], [[0.0]], [1.0], 2.0, p=1.0)
