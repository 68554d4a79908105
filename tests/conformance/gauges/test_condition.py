"""The condition number of a matrix exponential, which scales the bounds of the contract EXPM."""

import numpy as np
import pytest
from judging import judged
from scipy.linalg import expm, expm_cond

import refssm
from refssm._numerics.expm import expm_derivative
from refssm.conformance.gauges import linalg
from refssm.conformance.gauges.linalg import condition
from refssm.conformance.judging.grading import judge
from refssm.discretize import DISCRETIZE_ZOH
from refssm.discretize.hold import zoh_exponent


def matrix(n, dtype, seed):
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((n, n))
    return G + 1j * rng.standard_normal((n, n)) if dtype == "complex128" else G


@pytest.mark.parametrize("decay", [0.0, 30.0])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_up_to_twelve_states_it_is_that_of_scipy(n, dtype, decay):
    G = matrix(n, dtype, n) - decay * np.eye(n)
    assert abs(condition(G) / expm_cond(G) - 1) < 2.0**-20


@pytest.mark.parametrize("size", [2.0**-20, 1.0, 20.0])
def test_the_derivative_is_that_of_the_exponential_of_twice_the_size(size):
    G, E = size * matrix(6, "complex128", 1), matrix(6, "complex128", 2)
    near = linalg.squarings(G) - 1
    right = expm_derivative(G, E)
    for steps in (0, near):
        slope = linalg._Exponential(G, steps).derivative(E)
        assert np.abs(slope - right).max() < 2.0**-30 * np.abs(right).max()


def test_a_derivative_that_forgets_one_of_its_two_products_is_seen(monkeypatch):
    G, E = matrix(6, "complex128", 1), matrix(6, "complex128", 2)
    exponential = linalg._Exponential(4 * G, 0)
    exponential.powers[0] = exponential.powers[0] * 0
    right = expm_derivative(4 * G, E)
    assert np.abs(exponential.derivative(E) - right).max() > np.abs(right).max() / 100


@pytest.mark.parametrize("size", [2.0**-20, 1.0, 20.0])
def test_the_functions_of_a_hold_and_their_derivative_are_blocks_of_an_exponential(size):
    F, E, I = size * matrix(3, "complex128", 1), matrix(3, "complex128", 2), np.eye(3)
    G, direction = np.zeros((9, 9), complex), np.zeros((9, 9), complex)
    G[:3, :3], G[:3, 3:6], G[3:6, 6:], direction[:3, :3] = F, I, I, E
    hold, right = linalg._Hold(F), expm(G)
    slope = expm_derivative(G, direction)[:3, 3:6]
    for found, wanted in (
        (hold.value, right[:3, 3:6]),
        (hold.joined, right[:3, 6:]),
        (hold.derivative(E), slope),
    ):
        assert np.abs(found - wanted).max() < 2.0**-30 * np.abs(wanted).max()


def with_digits_of_one(rule):
    """B̄ as after a subtraction of 1: it has the absolute error of a number near 1."""

    def wrong(A, B, dt):
        A_bar, *B_bars = rule(A, B, dt)
        return A_bar, *((b + np.float32(1)) - np.float32(1) for b in B_bars)

    return wrong


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["discretize_zoh", "discretize_foh"])
def test_an_identity_hides_no_error_of_the_input_matrix(name, seed):
    wrong = with_digits_of_one(getattr(refssm, name))
    (line,) = judged(name, wrong, "value", types=("float32",), dtypes=("float32",), seed=seed)
    assert line.failed
    assert "B" in line.message.partition("[")[0]


def augmented(A, B, dt):
    """One exponential of [[dt A, dt B], [0, 0]], halved as often as its own norm asks for."""
    G, n = zoh_exponent(A, B, dt), A.shape[-1]
    s = max(0, int(np.ceil(np.log2(np.abs(G).sum(0).max()))))
    G = G / np.float32(2.0**s)
    E = term = np.eye(len(G), dtype=G.dtype)
    for k in range(1, 16):
        term = term @ G / np.float32(k)
        E = E + term
    for _ in range(s):
        E = E @ E
    return E[:n, :n], E[:n, n:]


def test_a_large_input_matrix_makes_one_exponential_of_both_backward_stable():
    grades = []
    for size in (1, 2.0**12):
        A = np.array([[-0.3, 0.2], [-0.1, -0.4]], np.float32)
        B = np.array([[size], [size / 3]], np.float32)
        told = judge(DISCRETIZE_ZOH, augmented, A, B, np.ones((), np.float32))
        grades.append(told.grade)
    assert grades == ["A", "B"]
