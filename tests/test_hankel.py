"""Facts of Hankel matrices, Markov parameters and transfer functions."""

import numpy as np
import pytest
from scipy import linalg, signal

import refssm
from refssm.conformance.judging.grading import judge
from refssm.conformance.judging.verdict import kind_of
from refssm.hankel import HANKEL_MATRIX, MARKOV_PARAMETERS, TRANSFER, TRANSFER_DISCRETE

each_role = pytest.mark.parametrize("role", ["reference", "jit"])


def system(seed, n=4, scale=0.2):
    rng = np.random.default_rng(seed)
    A = scale * rng.standard_normal((n, n))
    return A, rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal()


@each_role
def test_the_matrix_is_scipys_hankel(role):
    h = np.arange(1.0, 8.0)
    assert np.array_equal(HANKEL_MATRIX.implementation(role)(h), linalg.hankel(h))


@each_role
def test_it_applied_to_the_past_is_the_convolution_after_the_input_ends(role):
    h, past = np.array([3.0, -1.0, 4.0, 1.0]), np.array([2.0, 7.0, 1.0, 8.0])
    whole = np.convolve(past[::-1], h)  # `past` starts with the latest input
    assert np.array_equal(HANKEL_MATRIX.implementation(role)(h) @ past, whole[3:])


@each_role
def test_complex_values_are_not_conjugated(role):
    H = HANKEL_MATRIX.implementation(role)(np.array([1j, 2.0]))
    assert np.array_equal(H, [[1j, 2], [2, 0]])


@each_role
def test_nan_stays_on_its_antidiagonal(role):
    H = HANKEL_MATRIX.implementation(role)(np.array([1.0, np.nan, 2.0]))
    i, j = np.indices((3, 3))
    assert np.array_equal(np.isnan(H), i + j == 1)


@each_role
def test_markov_parameters_are_a_krylov_kernel(role):
    A, B, C, _ = system(1)
    h = MARKOV_PARAMETERS.implementation(role)(A, B, C, l=20)
    assert judge(MARKOV_PARAMETERS, lambda *_, l: h, A, B, C, l=20).ok
    assert np.array_equal(
        refssm.markov_parameters(A, B, C, l=20), refssm.krylov_kernel(A, B, C, l=20)
    )


@each_role
def test_one_state_has_a_first_order_response(role):
    G = TRANSFER.implementation(role)([[-2.0]], [3.0], [4.0], 1.0, [2.0, 0.0, -5.0])
    assert G.tolist() == [4.0, 7.0, -3.0]


@each_role
def test_one_discrete_state_has_its_first_entry_at_the_power_zero(role):
    G = TRANSFER_DISCRETE.implementation(role)([[0.5]], [3.0], [2.0], 1.0, [1.0, -0.5, 2.0**60])
    assert G.tolist() == [13.0, 4.0, 7.0]


@each_role
def test_a_diagonal_system_is_a_cauchy_kernel(role):
    w = np.array([-1.0, -2 + 3j, -0.5 - 1j])
    B, C = np.array([1.0, 2.0, 1j]), np.array([3.0, 1.0, -1.0])
    s = 1j * np.linspace(-5, 5, 11)
    k = refssm.cauchy_kernel(B * C, w, s)
    D = np.zeros((), complex)
    assert judge(TRANSFER, lambda *_: k, np.diag(w), B + 0j, C + 0j, D, s).ok
    G = TRANSFER.implementation(role)(np.diag(w), B, C, D, s)
    assert judge(TRANSFER, lambda *_: G, np.diag(w), B + 0j, C + 0j, D, s).ok


def test_scipys_frequency_response_is_ours():
    A, B, C, D = system(2, scale=1)
    A = A - 4 * np.eye(4)
    w = np.array([0.1, 1.0, 10.0])
    theirs = signal.StateSpace(A, B[:, None], C[None], [[D]]).freqresp(w)[1]  # pyright: ignore[reportAttributeAccessIssue]
    exact = [np.asarray(x, complex) for x in (A, B, C, D, 1j * w)]
    assert np.allclose(theirs, refssm.transfer(*exact))


@each_role
def test_the_discrete_one_at_roots_of_unity_is_the_transform_of_the_kernel(role):
    A, B, C, _ = system(3)
    A = np.triu(A, 1)  # nilpotent: the kernel is finite
    h = refssm.markov_parameters(A, B, C, l=8)
    z = np.exp(2j * np.pi * np.arange(8) / 8)
    exact = [np.asarray(x, complex) for x in (A, B, C, 0.0, z)]
    G = TRANSFER_DISCRETE.implementation(role)(*exact)
    bound = 16 * 2.0**-53 * 8 * np.abs(h).sum()  # errors of the transform and of z
    assert (np.abs(G - np.fft.fft(h)) <= bound).all()


@pytest.mark.parametrize("role", ["reference", "jit"])
def test_a_pole_hit_exactly_is_no_number(role):
    A, one = np.diag([-1.0 + 0j, -2.0]), np.ones(2, complex)
    G = TRANSFER.implementation(role)(A, one, one, 0j, np.array([-1.0 + 0j, 1.0]))
    assert (kind_of(G) != 0).tolist() == [True, False]


@each_role
def test_nan_in_a_point_stays_there(role):
    A, one = np.diag([-1.0 + 0j, -2.0]), np.ones(2, complex)
    G = TRANSFER.implementation(role)(A, one, one, 0j, np.array([np.nan, 1.0 + 0j]))
    assert np.isnan(G).tolist() == [True, False]
