"""Facts of gramians and of the equations that they solve."""

import numpy as np
import pytest
from honest.hankel import gramians as honest
from scipy import linalg

import refssm
from refssm._numerics.elimination import response
from refssm._numerics.lyapunov import lyapunov, stein
from refssm.conformance.gauges.tracked import Tracked, tracing
from refssm.conformance.judging.grading import judge
from refssm.conformance.standard import Standard
from refssm.hankel import GRAMIANS, GRAMIANS_DISCRETE

U = 2.0**-24
EXACT = 8 * 2.0**-53  # eight operations in double precision


def legs(n):
    i = np.arange(n)
    A = -np.tril(np.sqrt(np.outer(2 * i + 1, 2 * i + 1)), -1) - np.diag(i + 1.0)
    return A, np.sqrt(2 * i + 1.0)


def random(seed, n, dtype="complex128"):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n + 2)) + 1j * rng.standard_normal((n, n + 2))
    x = x if np.dtype(dtype).kind == "c" else x.real
    return x[:, :n].astype(dtype), x[:, n].astype(dtype), x[:, n + 1].astype(dtype)


def test_one_state_has_the_energy_of_an_exponential():
    P, Q = refssm.gramians([[-0.25]], [3.0], [1.0])
    assert (P.tolist(), Q.tolist()) == ([[18.0]], [[2.0]])
    P, Q = refssm.gramians_discrete([[0.5]], [3.0], [1.5])
    assert (P.tolist(), Q.tolist()) == ([[12.0]], [[3.0]])


def test_a_diagonal_system_has_cauchy_like_gramians():
    w, B, C = np.array([-1.0, -2 + 1j]), np.array([1.0, 2j]), np.array([1j, 1.0])
    P = -np.outer(B, B.conj()) / (w[:, None] + w.conj())
    Q = -np.outer(C.conj(), C) / (w[:, None].conj() + w)
    assert judge(GRAMIANS, lambda *_: (P, Q), np.diag(w), B, C).ok


def test_legs_moved_right_by_a_half_has_the_identity_for_its_gramian():
    # A + Aᵀ = −B Bᵀ − I
    A, B = legs(5)
    excess = A + A.T + np.outer(B, B) + np.eye(5)
    assert (np.abs(excess) <= 4 * 2.0**-53 * np.outer(B, B)).all()
    shifted = A + np.eye(5) / 2  # then I solves the equation
    P, Q = np.eye(5), refssm.gramians(shifted, B, B)[1]
    assert judge(GRAMIANS, lambda *_: (P, Q), shifted, B, B).ok


@pytest.mark.parametrize("n", [4, 16])
def test_the_gramians_of_legs_are_judged_right(n):
    A, B = legs(n)
    assert judge(GRAMIANS, refssm.gramians, A, B, np.cos(np.arange(n))).ok


@pytest.mark.parametrize("make", [refssm.gramians, refssm.gramians_discrete])
def test_both_are_hermitian_exactly(make):
    A, B, C = random(1, 5)
    P, Q = make(A / 20 - (make is refssm.gramians) * np.eye(5), B, C)
    assert np.array_equal(P, P.conj().T)
    assert np.array_equal(Q, Q.conj().T)


def test_the_discrete_ones_are_those_of_the_hankel_factors():
    A, B, C = random(2, 3)
    A = np.triu(A, 1)  # nilpotent: three terms
    R = np.stack([B, A @ B, A @ A @ B], -1)
    O = np.stack([C, C @ A, C @ A @ A])
    made = R @ R.conj().T, O.conj().T @ O
    assert judge(GRAMIANS_DISCRETE, lambda *_: made, A, B, C).ok


def test_doubling_near_the_unit_circle_is_refused_and_in_a_wider_type_is_not():
    # A^(2^j) has 2^j rounding errors, which differ between the states; those of 1/(1 − ‖A‖²) terms
    # remain
    A = np.roll(np.diag([0.99899, 0.998861, 0.99884, 0.998983]), 1, axis=0)  # on every processor
    B, C = np.array([-2.0, 1, -2, -1]), np.array([3.0, 3, 3, 2])
    doubled = honest.both(honest.doubled)
    assert not judge(GRAMIANS_DISCRETE, doubled, A, B, C).ok
    assert judge(GRAMIANS_DISCRETE, honest.both(honest.widened(honest.doubled)), A, B, C).ok
    assert judge(GRAMIANS_DISCRETE, doubled, A / 2, B, C).ok


def test_real_arguments_beside_complex_ones_have_real_gramians_of_their_own():
    A, B, C = random(3, 4, "float64")
    A = A - 6 * np.eye(4)
    P, Q = refssm.gramians(A, B, C + 1j * B)
    assert (P.dtype, Q.dtype) == (np.dtype(float), np.dtype(complex))
    assert judge(GRAMIANS, refssm.gramians, A, B, C + 1j * B).ok


def test_scipy_is_wrong_for_a_real_matrix_beside_a_complex_side():
    # SciPy issue 26177: if this test fails, docs/operators/hankel.md is out of date
    A = np.array([[-1.0, 2.0], [-2.0, -1.0]])
    B = np.array([1.0, 1j])
    X = linalg.solve_continuous_lyapunov(A, -np.outer(B, B.conj()))
    P, Q = refssm.gramians(A, B, B)
    assert not judge(GRAMIANS, lambda *_: (X, Q), A, B, B).ok
    assert judge(GRAMIANS, lambda *_: (P, Q), A, B, B).ok


def test_no_solution_is_nan_and_nothing_is_raised():
    P, Q = refssm.gramians(np.zeros((2, 2)), np.ones(2), np.ones(2))
    assert np.isnan(P).any()
    P, Q = refssm.gramians_discrete(np.eye(2), np.ones(2), np.ones(2))
    assert np.isnan(Q).any()


def test_nan_reaches_the_gramian_that_has_it():
    A, B, C = -np.eye(2), np.array([np.nan, 1.0]), np.ones(2)
    P, Q = refssm.gramians(A, B, C)
    assert np.isnan(P).all()
    assert np.isfinite(Q).all()


def test_the_charges_of_an_equation_of_one_state_are_its_derivatives():
    # x = −f/(2a) and x = f/(1 − a²), in numbers with few bits: the first is exact
    a, f = Tracked(np.array([[-0.0625]]), np.array([[[0.0, 1.0]]])), np.array([[3.0]])
    exact, off = np.array([[-0.0625]]), Tracked(f, np.array([[[0.0, 1.0]]]))
    with tracing(unit=U, floor=0.0):
        of_a, of_f = lyapunov(a, f), lyapunov(exact, off)
        x = of_a.value.item()
        assert x == 24
        for made, derivative in ((of_a, x / 0.0625), (of_f, 1 / 0.125)):
            rounding, charged = made.errors[0, 0]
            assert rounding == 8 * (2 * 0.0625 * x + 3)  # residual of a stable solver
            assert charged - rounding == derivative
        a, exact = Tracked(np.array([[0.5]]), np.array([[[0.0, 1.0]]])), np.array([[0.5]])
        of_a, of_f = stein(a, f), stein(exact, off)
        x = of_a.value.item()
        assert abs(x - 4) <= 4 * EXACT
        for made, derivative in ((of_a, 2 * 0.5 * x / 0.75), (of_f, 1 / 0.75)):
            rounding, charged = made.errors[0, 0]
            assert abs(rounding - (1.25 * x + 3) / 0.75) <= rounding * EXACT
            assert abs(charged - rounding - derivative) <= charged * EXACT


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("solve", [lyapunov, stein], ids=lambda f: f.__name__)
def test_an_equation_in_single_precision_stays_within_its_bounds(solve, seed):
    A, B, C = random(seed, 6, "complex64")
    A = A / 16 - (np.eye(6, dtype="c8") if solve is lyapunov else 0)
    F = np.outer(B, C)
    exact = A.astype(complex), F.astype(complex)
    with tracing(unit=U, floor=0.0):
        bound = solve(*map(Tracked, exact)).errors[..., 0]
    room = Standard.of(np.complex64).room  # a program's constant is LAPACK's, on every processor
    assert (np.abs(solve(A.astype("c8"), F) - solve(*exact)) <= room * U * bound).all()


@pytest.mark.parametrize("seed", range(10))
def test_a_response_in_single_precision_stays_within_its_bounds(seed):
    M, B, C = random(seed, 6, "complex64")
    exact = [x.astype(complex) for x in (M, B, C)]
    with tracing(unit=U, floor=0.0):
        bound = response(*map(Tracked, exact)).errors[..., 0]
    assert np.abs(response(M, B, C) - response(*exact)) <= U * bound
