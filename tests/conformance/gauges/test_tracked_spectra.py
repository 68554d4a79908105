"""The error rules of singular values and vectors: perturbed inputs stay within the bound."""

# pyright: reportAttributeAccessIssue=false
# (a tracked array comes back where a tracked array went in, which pyright cannot see)

import numpy as np
import pytest

from refssm._numerics.balance import balanced
from refssm._numerics.takagi import takagi
from refssm.conformance.gauges.hankel import graded
from refssm.conformance.gauges.tracked import Tracked, tracing

STEP = 2.0**-20  # first-order errors; second-order errors are a millionth of them
SLACK = 1 + 2.0**-10


def symmetric(n, seed, dtype=complex):
    """A symmetric matrix, graded over ten orders of magnitude."""
    rng, d = np.random.default_rng(seed), 10.0 ** -np.linspace(0, 5, n)
    G = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    G = G if dtype is complex else G.real
    return d[:, None] * (G + G.T) * d


def moved(G, seed):
    """Errors of some entries, and G perturbed by that much with random phases."""
    rng = np.random.default_rng(seed)
    size = graded(G) * rng.random(G.shape)
    size = (size + size.T) / 2
    phase = np.exp(2j * np.pi * rng.random(G.shape)) if np.iscomplexobj(G) else 1
    delta = size * (phase + np.transpose(phase)) / 2
    return size, G + STEP * delta


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("seed", range(4))
def test_values_move_by_no_more_than_their_bounds(dtype, seed):
    G = symmetric(6, seed, dtype)
    size, other = moved(G, seed + 10)
    with tracing(2.0**-53, 0.0):
        sigma, _, X = takagi(Tracked(G, np.stack([size, size], axis=-1)))
    again = takagi(other)
    away = np.abs(again[0] - sigma.value)
    assert (away <= STEP * SLACK * sigma.errors[..., 0]).all()
    # a vector up to its phase or sign
    along = (X.value.conj() * again[2]).sum(0)
    turned = again[2] * (along.conj() / np.abs(along))
    assert (np.abs(turned - X.value) <= STEP * SLACK * X.errors[..., 0]).all()


@pytest.mark.parametrize("dtype", [float, complex])
def test_a_bound_is_not_beyond_use(dtype):
    G = symmetric(6, 0, dtype)
    with tracing(2.0**-53, 0.0):
        sigma, _, _ = takagi(Tracked(G))
    assert (sigma.errors[..., 0] < 1e4 * sigma.value).all()  # also for values of 1e-10


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_the_matrix_is_what_the_values_and_vectors_make(n):
    for dtype in (float, complex):
        G = symmetric(n, n, dtype)
        sigma, s, X = takagi(G)
        assert X.dtype == G.dtype
        assert np.abs(X.conj().T @ X - np.eye(n)).max() <= 16 * n * 2.0**-53
        made = X.conj() @ ((s * sigma)[:, None] * X.conj().T)
        assert np.abs(made - G).max() <= 16 * n * 2.0**-53 * np.abs(G).max()
        assert (np.diff(sigma) <= 0).all()


def test_balanced_gramians_are_equal_and_diagonal_and_move_within_their_bounds():
    rng = np.random.default_rng(5)
    L, M, E = (rng.standard_normal((5, 5)) for _ in range(3))
    P, Q, E = L @ L.T, M @ M.T, (E + E.T) / 2
    with tracing(2.0**-53, 0.0):
        exact = np.zeros((5, 5, 2))
        sigma, S, T = balanced(
            Tracked(P, np.full((5, 5, 2), np.linalg.norm(E, 2))), Tracked(Q, exact)
        )
    u, size = 2.0**-53, np.linalg.norm(P) * np.linalg.norm(Q)
    assert np.abs(S.value.T @ T.value - np.eye(5)).max() <= 16 * 5 * u * size / sigma.value[-1] ** 2
    away = np.abs(balanced(P + STEP * E, Q)[0] - sigma.value)
    assert (away <= STEP * SLACK * sigma.errors[..., 0]).all()


def test_vectors_of_a_value_without_digits_have_no_bound():
    P, Q = np.diag([1.0, 1e-9]), np.diag([1.0, 1e-9])  # σ = 1 and 1e-9; √u is 2.4e-4
    with tracing(2.0**-24, 0.0):
        sigma, S, T = balanced(Tracked(P), Tracked(Q))
    assert np.isfinite(sigma.errors).all()
    for X in (S, T):
        assert np.isfinite(X.errors[0, 0]).all()
        assert not np.isfinite(X.errors[1, 1]).any()
