"""The kernel of products of inputs: the liquid recurrence degree by degree, in exact integers."""

from itertools import combinations
from math import prod

import numpy as np
import pytest

import refssm
import refssm.jit.diagonal as jit
from refssm import diagonal

roles = pytest.mark.parametrize("role", [diagonal, jit], ids=["reference", "jit"])
A = np.array([1, -1, 1j, -2])
B = np.array([2, 1 + 1j, -1, 1])
C = np.array([1, 3j, 2 - 1j, -1])
U = np.array([3.0, -1, 2, 5, 0, 1, -2])


def parts(u, most, neighbours=False):
    """y_k by degree in u, of x_k = (a + B u_k) x_{k−1} + B u_k, y_k = C x_k, from rest.

    With `neighbours`, a product has only inputs that follow each other.
    """
    x, fresh, y = np.zeros((most + 1, 4), complex), np.zeros((most + 1, 4), complex), []
    for u_k in u:
        new = np.zeros_like(fresh)
        new[1] = B * u_k
        for d in range(2, most + 1):
            new[d] = B * u_k * (fresh if neighbours else x)[d - 1]
        x, fresh = A * x + new, new
        y.append((C * x).sum(-1))
    return np.array(y).T


def late(u):
    """u one step late."""
    return np.concatenate([[0], u[:-1]])


@roles
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_part_of_the_recurrence_is_a_sum_over_products_in_which_the_oldest_input_has_a_lag(
    role, degree
):
    l = len(U)
    K = role.liquid_kernel(A, B, C, l=l, degree=degree)
    wanted = np.zeros(l, complex)
    for k in range(l):
        for times in combinations(range(k + 1), degree):
            wanted[k] += K[k - times[0] - (degree - 1)] * prod(U[t] for t in times)
    assert (parts(U, 3)[degree] == wanted).all()


@roles
def test_products_of_neighbours_are_convolved_in_their_own_order_of_time(role):
    K, v = role.liquid_kernel(A, B, C, l=len(U)), U * late(U)
    found = refssm.causal_convolution_direct(v, K)
    assert (found == parts(U, 2, neighbours=True)[2]).all()
    reversed_ = refssm.causal_convolution_direct(v[::-1].copy(), K)
    assert not (reversed_ == found).any()


def test_the_second_degree_is_two_convolutions():
    K, sums = refssm.liquid_kernel(A, B, C, l=len(U)), np.cumsum(U)
    first, second = (refssm.causal_convolution_direct(v, K) for v in (U, U * sums))
    assert (sums * late(first) - late(second) == parts(U, 2)[2]).all()


@roles
def test_the_first_degree_is_the_kernel_of_the_linear_system(role):
    K = role.liquid_kernel(A, B, C, l=9, degree=1)
    assert (refssm.krylov_kernel(np.diag(A), B, C, l=9) == K).all()


@roles
def test_the_kernel_and_its_gradient_by_hand(role):
    assert role.liquid_kernel([0.5], [3.0], [1.0], l=3).tolist() == [9, 4.5, 2.25]
    da, dB, dC = role.liquid_kernel_vjp([1.0, 1.0, 1.0], [0.5], [3.0], [4.0], l=3)
    assert da.tolist() == [4 * 9 * (1 + 2 * 0.5)]
    assert dB.tolist() == [2 * 4 * 3 * 1.75]
    assert dC.tolist() == [9 * 1.75]
    _, dB, _ = role.liquid_kernel_vjp([1.0], [0.5], [3.0], [4.0], l=1, degree=3)
    assert dB.tolist() == [3 * 4 * 9]


@roles
def test_a_mode_that_forgets_at_once_has_a_slope(role):
    assert role.liquid_kernel([0.0], [3.0], [1.0], l=3).tolist() == [9, 0, 0]
    da, *_ = role.liquid_kernel_vjp([1.0, 1.0, 1.0], [0.0], [3.0], [1.0], l=3)
    assert da.tolist() == [9]


@roles
def test_no_nan_of_a_pole_reaches_the_first_entry(role):
    K = role.liquid_kernel([np.nan, 0.5], [1.0, 1.0], [1.0, 1.0], l=3)
    assert np.isnan(K).tolist() == [False, True, True]


@roles
def test_no_entries_and_no_modes(role):
    assert role.liquid_kernel([0.5], [1.0], [1.0], l=0).shape == (0,)
    assert role.liquid_kernel([], [], [], l=2).tolist() == [0, 0]
    gradients = role.liquid_kernel_vjp(np.zeros(0), [0.5], [1.0], [1.0], l=0)
    assert [g.tolist() for g in gradients] == [[0], [0], [0]]


def test_a_product_of_no_inputs_is_refused():
    with pytest.raises(ValueError, match=r"liquid_kernel: `degree` .* integer >= 1, got 0"):
        refssm.liquid_kernel([0.5], [1.0], [1.0], l=1, degree=0)
