"""Facts of memories: what they hold, what comes back, and in which units."""

from fractions import Fraction

import numpy as np
import pytest
from memories import fourier, lagt, legs, legt, lmu
from mpmath import mp
from scipy.linalg import expm
from scipy.special import gamma

import refssm
from refssm import oracle
from refssm._polynomials import laguerre, legendre, recurrence
from refssm.conformance.gauge import gauges
from refssm.conformance.judge import C, judge
from refssm.hippo import (
    HIPPO_PROJECT,
    HIPPO_PROJECT_LEGS,
    HIPPO_RECONSTRUCT_FOURIER,
    HIPPO_RECONSTRUCT_LAGT,
    HIPPO_RECONSTRUCT_LEGS,
    HIPPO_RECONSTRUCT_LEGT,
    HIPPO_RECONSTRUCT_LMU,
    HIPPO_RESCALE,
)

U = 2.0**-53
RECONSTRUCTIONS = (
    HIPPO_RECONSTRUCT_LEGS,
    HIPPO_RECONSTRUCT_LEGT,
    HIPPO_RECONSTRUCT_LMU,
    HIPPO_RECONSTRUCT_LAGT,
    HIPPO_RECONSTRUCT_FOURIER,
)


def right(op, value, *arrays, **statics):
    """Whether `value` is what the operator should return."""
    return judge(op, lambda *_, **__: value, *map(np.asarray, arrays), **statics).ok


def settled(A, B, times):
    """The states that a constant signal of 1 leaves after so long, from rest."""
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
    # |staircase − u| ≤ max|u'|/2l, a projection makes no norm larger, and Σ (2i+1) = n²
    n, p = 5, np.polynomial.Polynomial([0.3, -1.0, 2.0, 1.5, -2.5])  # on [0, 1], slope at most 4.5
    c = refssm.hippo_project_legs(p((np.arange(l) + 0.5) / l), n=n)[-1]
    s = np.linspace(0, 1, 101)
    error = np.abs(refssm.hippo_reconstruct_legs(c, s) - p(1 - s)).max()
    assert error <= n * np.abs(p.deriv()(s)).max() / (2 * l)
    assert error > n * U  # a staircase is no polynomial


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
    # beyond the n coefficients stays τ = a P_n, constant in time for u = tⁿ; what LegT takes for
    # u(t − w) is wrong by τ(w), and the states settle at those of u plus −A⁻¹ q τ(w)
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
    # the start is forgotten as e^{TA}; a staircase is off by max|u'| dt/2 where it is not forgotten
    forgotten = np.linalg.norm(expm(T * A), 2) * (T**n * n + np.linalg.norm(theory))
    gains = sum(np.linalg.norm(expm(k * A / 64) @ B) for k in range(int(T * 64))) / 64
    slope = n * T ** (n - 1) * T / l / 2
    assert np.linalg.norm(x - theory) <= forgotten + slope * gains
    y = refssm.hippo_reconstruct_legt(x, s)
    assert np.abs(y - s**n).max() > np.abs(tail) / 2  # it does not come back


def test_a_constant_comes_back_from_lagt_only_at_its_simplest():
    A, B = lagt(6)
    assert settled(A, B, 200.0).round(12).tolist() == [1, 0, 0, 0, 0, 0]
    s = np.array([0.0, 0.5, 3.0])
    c = np.eye(6)[0]
    assert refssm.hippo_reconstruct_lagt(c, s).tolist() == [1, 1, 1]
    A, B = lagt(6, beta=2.0)
    y = refssm.hippo_reconstruct_lagt(np.linalg.solve(-A, B), s, beta=2.0)
    assert np.abs(y - 1).max() > 1e3 * U  # only 6 terms of a series that does not end


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 1.0), (0.5, 1.0), (-0.5, 2.0), (0.25, 0.5)])
def test_what_lagt_gives_back_it_takes_for_the_same_states(alpha, beta):
    # the kernel of state i is its basis function p_i but for the weight: so ∫ kernel_i p_k = 0, i ≠ k
    n, times = 4, np.array([0.25, 1.0, 4.0])
    with mp.workdps(30):
        A, B = (mp.matrix(x.tolist()) for x in lagt(n, alpha, beta))
        kernels = np.array(
            [(mp.expm(mp.mpf(float(s)) * A) * B).T.tolist()[0] for s in times], float
        )
    weight = beta ** (1 - alpha) / gamma(1 - alpha) * times**-alpha * np.exp(-beta * times)
    p = (kernels / weight[:, None]).T
    assert right(HIPPO_RECONSTRUCT_LAGT, p, np.eye(n), times, alpha=alpha, beta=beta)


def test_fourier_waves_come_back_at_every_time():
    window, c = 2.0, np.array([1.0, 0.0, 0.5, -0.25, 0.0, 2.0])
    s = np.linspace(0, 2, 41)
    turns = 2 * np.pi * s / window
    y = 1 + np.sqrt(2) * (0.5 * np.cos(turns) - 0.25 * np.sin(turns) + 2 * np.sin(2 * turns))
    assert right(HIPPO_RECONSTRUCT_FOURIER, y, c, s, window=window)


def test_a_wave_of_the_window_is_a_solution_of_the_midpoint_form_and_not_of_the_naive_one():
    # x* = the coefficients of u(t − ·): x*' = S x*, and B u = B bᵀ x*/… since u comes back at s = 0
    window, n = 2.0, 8
    c = np.random.default_rng(3).standard_normal(n)
    c[1] = 0
    u = refssm.hippo_reconstruct_fourier(c, [0.0], window=window)
    rotation = fourier(n, window, 0)[0]
    bound = n * 16 * U * np.abs(c).sum() * 2
    for ends, solves in ((2, True), (1, True)):  # the sum is right in both where the ends agree
        A, B = fourier(n, window, ends)
        assert (np.abs(A @ c + B * u - rotation @ c).max() <= bound) == solves


@pytest.mark.parametrize("n", [8, 64])
def test_at_the_ends_of_the_window_fourier_gives_their_mean(n):
    # u(t − s) = s over [0, 1]: mean ½, sines −√2/2πk, no cosines
    k = np.arange(1, n // 2)
    c = np.zeros(n)
    c[0], c[3::2] = 0.5, -np.sqrt(2) / (2 * np.pi * k)
    y = refssm.hippo_reconstruct_fourier(c, [0.0, 0.5, 1.0])
    assert y[0] == 0.5
    assert right(HIPPO_RECONSTRUCT_FOURIER, np.full(3, 0.5), c, [0.0, 0.5, 1.0])


TABLE = {16: (0.24, 0.033), 64: (0.25, 0.0070), 256: (0.25, 0.0017)}


@pytest.mark.parametrize("n", TABLE)
def test_the_naive_fourier_window_is_stuck_and_the_midpoint_form_is_not(n):
    def u(t):
        return np.sin(1.4 * np.pi * t) + 0.3 * t

    l, s = 2048, np.linspace(0.05, 0.95, 2001)
    errors = []
    for ends in (1, 2):
        x = refssm.hippo_project(*fourier(n, 1.0, ends), u((np.arange(l) + 0.5) / l), 1 / l)[-1]
        y = refssm.hippo_reconstruct_fourier(x, s)
        errors.append(float(f"{np.sqrt(np.mean((y - u(1 - s)) ** 2)):.1e}"))
    assert tuple(errors) == TABLE[n]


def scalings(n):
    """By name: what the orthonormal states are multiplied by."""
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
    A, B = lmu(n)
    assert (A == np.round(A)).all()
    assert (B == np.round(B)).all()


def test_the_states_of_a_rescaled_memory_are_rescaled():
    A, B = legt(6)
    u = np.random.default_rng(4).standard_normal(40)
    for s in scalings(6).values():
        x = refssm.hippo_project(*refssm.hippo_rescale(A, B, s), u, 0.05)
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


@pytest.mark.parametrize("op", RECONSTRUCTIONS, ids=str)
def test_one_coefficient_alone_is_its_basis_function(op):
    s = np.array([0.0, 0.3, 1.0])
    firsts = {"fourier": 1.0, "lmu": 1.0}
    y = op.implementation("reference")(np.eye(4)[:1, :1] * 2.5, s)
    assert y.tolist() == [[2.5 * firsts.get(op.name.rpartition("_")[2], 1.0)] * 3]


@pytest.mark.parametrize("window", [0.0, -1.0, np.nan, np.inf, True, "1"])
def test_a_window_that_is_none_is_refused(window):
    with pytest.raises(ValueError, match="`window` must be a number above 0, got"):
        refssm.hippo_reconstruct_legt([1.0], [0.0], window=window)


@pytest.mark.parametrize("alpha", [-1.0, 1.0, np.nan])
def test_an_exponent_out_of_range_is_refused(alpha):
    with pytest.raises(ValueError, match="`alpha` must be a number above −1 and below 1"):
        refssm.hippo_reconstruct_lagt([1.0], [0.0], alpha=alpha)


def test_at_time_zero_the_laguerre_weight_is_zero_or_infinite():
    assert refssm.hippo_reconstruct_lagt([1.0], [0.0], alpha=0.5).tolist() == [0]
    assert refssm.hippo_reconstruct_lagt([1.0], [0.0], alpha=-0.5).tolist() == [np.inf]


@pytest.mark.parametrize("n", [2, 9, 64])
def test_the_bound_of_a_legendre_recurrence_holds_and_is_no_more_than_its_own_by_far(n):
    x = np.concatenate([np.linspace(-1, 1, 201), [0.999999, -0.999999]]).astype(np.float32)
    single = legendre(x, n).astype(float)
    wide = legendre(x.astype(float), n)
    (closed,) = gauges(lambda z: legendre(z, n), x, unit=2.0**-24)
    i = np.arange(n, dtype=float)
    (solved,) = gauges(
        lambda z: recurrence(z, (2 * i + 1) / (i + 1), 0 * i, i / (i + 1)), x, unit=U
    )
    assert (np.abs(single - wide) <= 2.0**-24 * closed.k0).all()
    assert (solved.k0 <= 1.01 * closed.k0 + 1).all()  # the closed form bounds the solved one
    assert n < 9 or (closed.k0 < (1 + np.sqrt(2)) ** n).all()  # what moduli alone would give


def test_the_bound_of_a_laguerre_recurrence_holds():
    s = np.linspace(0, 30, 101).astype(np.float32)
    single, wide = laguerre(s, 40, 0.5).astype(float), laguerre(s.astype(float), 40, 0.5)
    (told,) = gauges(lambda z: laguerre(z, 40, 0.5), s, unit=2.0**-24)
    assert (np.abs(single - wide) <= 2.0**-24 * told.k0).all()
    assert (told.k0 < 1e4 * np.maximum(np.abs(wide).max(-1, keepdims=True), 1)).all()


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
    # A holds √ in double precision: C roundings of it, 4 steps
    bound = 4 * C * U * np.abs(A).sum() * np.abs(u).max()
    assert np.abs(np.array(c.T.tolist(), float)[0] - exact[-1].astype(float)).max() <= bound


def test_scales_that_are_powers_of_two_change_no_digit_of_the_recurrence():
    A, B = legt(6)
    A_bar, B_bar = refssm.discretize_zoh(A, B[:, None], 0.05)
    s, u = 2.0 ** np.array([0, 3, -2, 5, 1, -7]), np.random.default_rng(6).standard_normal(50)
    scaled_A, scaled_B = refssm.hippo_rescale(A_bar, B_bar[:, 0], s)
    x = refssm.dense_scan(A_bar, B_bar[:, 0] * u[:, None])
    assert np.array_equal(refssm.dense_scan(scaled_A, scaled_B * u[:, None]), s * x)
