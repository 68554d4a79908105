"""The condition number of a matrix exponential, which scales the bounds of the contract EXPM."""

import numpy as np
import pytest
from scipy.linalg import expm_cond

from refssm._numerics.expm import expm_derivative
from refssm.conformance.gauges import linalg
from refssm.conformance.gauges.linalg import condition


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
