"""Facts of memories: states, reconstruction of polynomials, and units."""

from fractions import Fraction

import numpy as np
import pytest
from memories import legs, legt, lmu
from mpmath import mp
from scipy.linalg import expm

import refssm
from refssm import oracle
from refssm.conformance.judging.grading import judge
from refssm.conformance.standard import C
from refssm.hippo import HIPPO_PROJECT, HIPPO_PROJECT_LEGS, HIPPO_RESCALE

U = 2.0**-53


def right(op, value, *arrays, **statics):
    """True if the judge accepts `value` as the output of the operator."""
    return judge(op, lambda *_, **__: value, *map(np.asarray, arrays), **statics).ok


def settled(A, B, times):
    """The states after a constant signal of 1 for some time, from rest."""
    return (np.eye(len(B)) - expm(A * times)) @ np.linalg.solve(-A, B)


def test_the_projection_of_two_samples_by_hand():
    # u = 1, then 3 on halves of [0, 2]: mean 2; √3 (∫₁² 3 (t − 1) dt + ∫₀¹ (t − 1) dt)/2 = √3/2
    c = refssm.hippo_project_legs([1.0, 3.0], n=3)
    by_hand = np.array([[1, 0, 0], [2, np.sqrt(3) / 2, 0]])
    for value in (c, by_hand):
        assert right(HIPPO_PROJECT_LEGS, value, [1.0, 3.0], n=3)


def test_a_constant_is_its_first_coefficient():
    constant = np.zeros((40, 6))
    constant[:, 0] = 0.7
    for value in (constant, refssm.hippo_project_legs(np.full(40, 0.7), n=6)):
        assert right(HIPPO_PROJECT_LEGS, value, np.full(40, 0.7), n=6)


@pytest.mark.parametrize("n", [1, 5, 12])
def test_the_projection_solves_the_differential_equation_over_each_step(n):
    rng = np.random.default_rng(1)
    u, (A, B) = rng.standard_normal(30), legs(n)
    c = np.zeros((30, n))
    c[0, 0] = u[0]
    for k in range(1, 30):
        E = expm(np.log((k + 1) / k) * A)
        c[k] = E @ c[k - 1] + np.linalg.solve(A, E - np.eye(n)) @ B * u[k]
    assert right(HIPPO_PROJECT_LEGS, c, u, n=n)


def test_a_stretched_staircase_has_the_same_coefficients():
    u = np.random.default_rng(2).standard_normal(16)
    c = refssm.hippo_project_legs(u, n=8)
    stretched = np.repeat(u, 3)
    value = refssm.hippo_project_legs(stretched, n=8)
    value[2::3] = c
    assert right(HIPPO_PROJECT_LEGS, value, stretched, n=8)


@pytest.mark.parametrize("l", [64, 256])
def test_a_polynomial_comes_back_from_legs_as_the_step_goes_to_zero(l):
    # |piecewise constant signal − u| ≤ max|u'|/2l, a projection increases no norm, Σ (2i+1) = n²
    n, p = 5, np.polynomial.Polynomial([0.3, -1.0, 2.0, 1.5, -2.5])  # on [0, 1], slope at most 4.5
    c = refssm.hippo_project_legs(p((np.arange(l) + 0.5) / l), n=n)[-1]
    s = np.linspace(0, 1, 101)
    error = np.abs(refssm.hippo_reconstruct_legs(c, s) - p(1 - s)).max()
    assert error <= n * np.abs(p.deriv()(s)).max() / (2 * l)
    assert error > n * U  # a piecewise constant signal is not a polynomial


def test_of_a_higher_polynomial_legs_keeps_the_first_legendre_coefficients():
    n, l, p = 4, 256, np.polynomial.Legendre([1.0, -0.5, 0.25, 0.5, 0.3, -0.2, 0.1], domain=[0, 1])
    c = refssm.hippo_project_legs(p((np.arange(l) + 0.5) / l), n=n)[-1]
    s = np.linspace(0, 1, 101)
    kept = np.polynomial.Legendre(p.coef[:n], domain=[0, 1])(1 - s)
    error = np.abs(refssm.hippo_reconstruct_legs(c, s) - kept).max()
    assert error <= n * np.abs(p.deriv()(s)).max() / (2 * l)


@pytest.mark.parametrize(("family", "name"), [(legt, "legt"), (lmu, "lmu")])
@pytest.mark.parametrize(("windows", "error"), [(1, 0.45), (2, 1.2e-3), (4, 7.1e-8)])
def test_a_window_of_eight_forgets_the_start(family, name, windows, error):
    A, B = family(8)
    u = np.ones(16 * windows)
    x = refssm.hippo_project(A, B, u, 1 / 16)
    s = np.linspace(0, 1, 101)
    y = getattr(refssm, f"hippo_reconstruct_{name}")(x[-1], s)
    assert float(f"{np.abs(y - 1).max():.1e}") == error
    exact = np.array([settled(A, B, (k + 1) / 16) for k in range(len(u))])
    assert right(HIPPO_PROJECT, exact, A, B, u, 1 / 16)


def test_legt_returns_what_theory_says_of_a_polynomial_of_degree_n():
    # beyond the n coefficients remains τ = a P_n, constant in time for u = tⁿ; LegT's approximation
    # of u(t − w) has the error τ(w), and the states converge to those of u plus −A⁻¹ q τ(w)
    n, l = 4, 4096
    A, B = legt(n)
    T, s = 6.0, np.linspace(0, 1, 101)
    t = (np.arange(l) + 0.5) * T / l - T  # u = tⁿ up to t = 0
    x = refssm.hippo_project(A, B, t**n, T / l)[-1]
    p = np.polynomial.Polynomial([0.0] * n + [1.0]).convert(
        kind=np.polynomial.Legendre, domain=[-1, 0]
    )
    c = p.coef[:n] / np.sqrt(2 * np.arange(n) + 1)
    q = (-1.0) ** np.arange(n) * np.sqrt(2 * np.arange(n) + 1)
    tail = p.coef[n] * (-1) ** n
    theory = c + np.linalg.solve(-A, q) * tail
    # the start decays like e^{TA}; a piecewise constant signal has an error of max|u'| dt/2 until
    # then
    forgotten = np.linalg.norm(expm(T * A), 2) * (T**n * n + np.linalg.norm(theory))
    gains = sum(np.linalg.norm(expm(k * A / 64) @ B) for k in range(int(T * 64))) / 64
    slope = n * T ** (n - 1) * T / l / 2
    assert np.linalg.norm(x - theory) <= forgotten + slope * gains
    y = refssm.hippo_reconstruct_legt(x, s)
    assert np.abs(y - s**n).max() > np.abs(tail) / 2  # it is not reconstructed


def scalings(n):
    """Factors of the orthonormal states, by name."""
    roots = np.sqrt(2 * np.arange(n) + 1.0)
    signs = (-1.0) ** np.arange(n)
    return {"orthonormal": np.ones(n), "root-free": 1 / roots, "large": roots, "lmu": signs * roots}


def test_lmu_is_legt_rescaled():
    A, B = legt(7, 1.5)
    assert right(HIPPO_RESCALE, lmu(7, 1.5), A, B, scalings(7)["lmu"])


def test_without_roots_legs_legt_and_lmu_have_whole_numbers():
    n = 9
    i, k = np.indices((n, n))
    below = -np.where(i > k, 2 * k + 1, 0) - np.diag(np.arange(n) + 1)
    sliding = -(2 * k + 1) * np.where(k <= i, 1, (-1.0) ** (i - k))
    for (A, B), whole in (legs(n), below), (legt(n), sliding):
        value = whole.astype(float), np.ones(n)
        assert right(HIPPO_RESCALE, value, A, B, scalings(n)["root-free"])
    large = below.astype(float) * (2 * i + 1) / (2 * k + 1), 2 * np.arange(n) + 1.0
    assert right(HIPPO_RESCALE, large, *legs(n), scalings(n)["large"])
    assert (np.round(large[0]) == large[0]).all()
    doubled = 2 * scalings(n)["root-free"]  # 2/√(2i+1): neither B = 1 nor B = 2i + 1
    assert right(HIPPO_RESCALE, (below.astype(float), np.full(n, 2.0)), *legs(n), doubled)
    A, B = lmu(n)
    assert (np.round(A) == A).all()
    assert (np.round(B) == B).all()


def test_the_states_of_a_rescaled_memory_are_rescaled():
    A, B = legt(6)
    u = np.random.default_rng(4).standard_normal(40)
    for s in scalings(6).values():
        scaled = refssm.hippo_rescale(A, B, s)
        x = refssm.hippo_project(scaled[0], scaled[1], u, 0.05)
        assert right(HIPPO_PROJECT, x / s, A, B, u, 0.05)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_time_by_a_power_is_legs_with_a_and_b_divided_by_it(p):
    # for u = t^m and σ = (t/T)^{1/p} uniform: c_i = T^m ∫ σ^{pm} P_i(2σ − 1) dσ, so T c' = m c
    n = 6
    A = [[-(2 * k + 1) if k < i else -(i + 1) if k == i else 0 for k in range(n)] for i in range(n)]
    for m in range(5):
        c = [Fraction(1, p * m + 1)]
        for i in range(1, n):
            c.append(c[-1] * Fraction(p * m - i + 1, p * m + i + 1))
        for i in range(n):
            assert m * c[i] * p == sum(a * c_k for a, c_k in zip(A[i], c, strict=True)) + 1


def test_a_memory_of_nothing_and_for_no_time_is_empty():
    assert refssm.hippo_project_legs(np.zeros(0), n=3).shape == (0, 3)
    assert refssm.hippo_project_legs(np.zeros(4), n=0).shape == (4, 0)
    assert refssm.hippo_project(np.zeros((0, 0)), np.zeros(0), np.ones(3), 0.1).shape == (3, 0)
    assert refssm.hippo_reconstruct_legs(np.zeros(0), [0.5]).tolist() == [0]


def test_oracles_agree_with_each_other_on_the_exact_projection():
    u = np.random.default_rng(5).standard_normal(5)
    (exact,) = oracle.evaluate(HIPPO_PROJECT_LEGS, u, n=4)
    A, B = legs(4)
    with mp.workdps(30):
        c = mp.matrix([u[0], 0, 0, 0])
        for k in range(1, 5):
            E = mp.expm(mp.log(mp.mpf(k + 1) / k) * mp.matrix(A.tolist()))
            c = (
                E * c
                + mp.inverse(mp.matrix(A.tolist())) * (E - mp.eye(4)) * mp.matrix(B.tolist()) * u[k]
            )
    # √ in A has rounding errors in double precision: C of them, 4 steps
    bound = 4 * C * U * np.abs(A).sum() * np.abs(u).max()
    assert np.abs(np.array(c.T.tolist(), float)[0] - exact[-1].astype(float)).max() <= bound


def test_scales_that_are_powers_of_two_change_no_digit_of_the_recurrence():
    A, B = legt(6)
    A_bar, B_bar = refssm.discretize_zoh(A, B[:, None], 0.05)
    s, u = 2.0 ** np.array([0, 3, -2, 5, 1, -7]), np.random.default_rng(6).standard_normal(50)
    scaled_A, scaled_B = refssm.hippo_rescale(A_bar, B_bar[:, 0], s)
    x = refssm.dense_scan(A_bar, B_bar[:, 0] * u[:, None])
    assert np.array_equal(refssm.dense_scan(scaled_A, scaled_B * u[:, None]), s * x)


def test_two_steps_of_a_decay_that_is_lost_in_rounding_are_lost_too():
    # e^A is 1e-106 and the computed value is 0, within its bound; e^{2A} must be allowed the same
    A = [[-265.0, -1.0, -1.7], [-256.0, -258.0, 1.5], [-8.0, -1.0, -256.0]]
    B, u, dt = [-4.6, -0.05, -0.05], [0.023, 0.0, 0.0, 0.0, 0.0], 1.0
    x = refssm.hippo_project(A, B, u, dt)
    assert (expm(np.array(A)) != 0).all()
    assert (x[1:] == 0).all()
    assert right(HIPPO_PROJECT, x, A, B, u, dt)
    assert not right(HIPPO_PROJECT, np.where(x == 0, 1e-17, x), A, B, u, dt)
