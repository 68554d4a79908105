"""Facts about the array-level mirrors: what the reference does not have, or does otherwise."""

import numpy as np
import pytest
from array_level import called

import refssm
from refssm_gpu._algebra.exponential import SQUARINGS, exponential, exponentials
from refssm_gpu._algebra.transforms import FACTORS, good_length
from refssm_gpu.convolution import bidirectional_convolution, causal_convolution
from refssm_gpu.discretize import discretize_zoh
from refssm_gpu.hankel import hankel_matrix, markov_parameters, transfer
from refssm_gpu.hippo import hippo_project_legs
from refssm_gpu.krylov import krylov_kernel
from refssm_gpu.scan.dense import driven

EPS = np.finfo(float).eps
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


# ---- exponentials


def test_matrices_of_all_norms_in_one_batch_give_each_its_own_exponential():
    sizes = 2.0 ** np.arange(-40, SQUARINGS)
    E = called(exponential, -sizes[:, None, None] * np.eye(1))
    alone = np.concatenate([called(exponential, -size * np.eye(1)[None]) for size in sizes])
    assert np.array_equal(E, alone)
    # each step D ← 2D + D² adds three roundings of |D| ≤ 1, and earlier errors grow no faster than
    # D; the last step squares e^{−x/2} = 1 + D
    wrong, half = 3 * EPS / 2 * (SQUARINGS + 3), np.exp(-sizes / 2)
    assert (np.abs(E[:, 0, 0] - np.exp(-sizes)) <= wrong * (2 * half + wrong) + EPS * half).all()


def test_a_norm_beyond_the_last_squaring_gives_nan_and_not_a_wrong_number():
    limit = 2.0 ** (SQUARINGS - 1)
    batch = np.stack([TURN * limit, TURN * np.nextafter(limit, np.inf), TURN])
    E = called(exponential, batch)
    assert np.isfinite(E[[0, 2]]).all()
    assert np.isnan(E[1]).all()


def test_infinity_and_nan_in_one_matrix_leave_the_others_of_the_batch_alone():
    A = np.stack([-np.eye(2), np.diag([np.inf, 1]), np.diag([np.nan, 1])])
    A_bar, B_bar = called(discretize_zoh, A, np.ones((2, 1)), 0.5)
    alone = called(discretize_zoh, -np.eye(2), np.ones((2, 1)), 0.5)
    assert np.array_equal(A_bar[0], alone[0])
    assert np.array_equal(B_bar[0], alone[1])
    assert np.isnan(A_bar[1:]).all()
    assert np.isnan(B_bar[1:]).all()


def test_a_nan_in_one_column_of_the_input_matrix_stays_in_its_column():
    B = np.array([[1.0, np.nan], [1.0, 1.0]])
    A_bar, B_bar = called(discretize_zoh, TURN, B, 0.5)
    assert np.isfinite(A_bar).all()
    assert np.isfinite(B_bar[:, 0]).all()
    assert np.isnan(B_bar[:, 1]).all()


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 2, 2)])
def test_empty_matrices_have_empty_exponentials(shape):
    E, x, y = called(exponentials, np.zeros(shape), np.zeros((*shape[:-1], 1)))
    assert E.shape == shape
    assert x.shape == y.shape == (*shape[:-1], 1)


# ---- lengths of transforms


def test_a_good_length_is_the_next_even_product_of_the_factors():
    def is_product(number):
        for factor in FACTORS:
            while number % factor == 0:
                number //= factor
        return number == 1

    for least in range(1, 1000):
        found = good_length(least)
        assert found == next(p for p in range(least + least % 2, 2 * least + 3, 2) if is_product(p))


def test_a_transform_of_nothing_gives_nothing():
    empty = np.zeros((2, 0), np.complex64)
    assert called(causal_convolution, empty, empty).shape == (2, 0)
    assert called(bidirectional_convolution, empty, empty, empty).dtype == np.complex64
    assert called(causal_convolution, np.zeros((0, 3)), np.ones(3)).shape == (0, 3)


@pytest.mark.parametrize("l", [1, 2, 3, 7, 16])
def test_both_kernels_on_one_circle_do_not_meet_but_at_lag_zero(l):
    start, ones = np.eye(1, l)[0], np.ones(l)
    y = called(bidirectional_convolution, start[::-1], 0 * ones, ones)  # only the last input
    assert np.array_equal(np.rint(y), ones)
    y = called(bidirectional_convolution, start, ones, 0 * ones)
    assert np.array_equal(np.rint(y), ones)


# ---- doubling


@pytest.mark.parametrize("l", [0, 1, 2, 3, 4, 5, 9, 16, 17, 64, 65, 100])
def test_a_kernel_of_any_length_has_exactly_its_entries(l):
    A = np.array([[0, 1], [1, 0]])  # powers of a permutation: exact
    K = called(krylov_kernel, A, np.array([3.0, 5.0]), np.array([1.0, 0.0]), l=l)
    assert K.tolist() == [3.0 if k % 2 == 0 else 5.0 for k in range(l)]


@pytest.mark.parametrize("l", [0, 1, 2, 3, 5, 8, 13])
def test_a_recurrence_of_any_length_has_exactly_its_states(l):
    b = np.arange(2.0 * l).reshape(l, 2)
    x, state = called(driven, TURN, b), np.zeros(2)
    for k in range(l):
        state = TURN @ state + b[k]
        assert np.array_equal(x[k], state)


def test_a_short_kernel_uses_no_power_beyond_its_length():
    nilpotent = np.eye(3, k=-1) * 1e200  # its square alone overflows, its cube is zero
    ones = np.ones(3)
    mine = called(krylov_kernel, nilpotent, ones, ones, l=2)
    assert np.array_equal(mine, refssm.krylov_kernel(nilpotent, ones, ones, l=2))


def test_joined_halves_have_exactly_the_mean_and_the_difference_of_two_pieces():
    c = called(hippo_project_legs, np.array([1.0, 3.0]), n=2)
    assert c[:, 0].tolist() == [1.0, 2.0]
    assert c[0, 1] == 0
    assert abs(c[1, 1] - np.sqrt(0.75)) <= 4 * EPS  # (3 − 1)/2 · √3/2: four roundings


@pytest.mark.parametrize("l", [1, 2, 3, 4, 5, 8, 9, 21])
def test_joined_halves_of_a_constant_are_that_constant(l):
    c = called(hippo_project_legs, np.ones(l), n=4)
    rounds = 2 * l.bit_length() + 1
    # a join has for each state a sum of 8 products; its matrices' norms add up to √2 at most
    assert np.abs(c - np.eye(1, 4)).max() <= 8 * rounds * np.sqrt(2) ** rounds * EPS


# ---- messages


CALLS = {
    "hankel_matrix: `h` is a list, wanted a": lambda: called(hankel_matrix, [1.0]),
    "markov_parameters: `l` must be an integer >= 0, got -1": lambda: called(
        markov_parameters, np.eye(1), np.ones(1), np.ones(1), l=-1
    ),
    "transfer: `s` has dtype float16": lambda: called(
        transfer, np.eye(1), np.ones(1), np.ones(1), 0.0, np.ones(1, np.float16)
    ),
    "discretize_zoh: `B` has n=2, but earlier arguments have n=1": lambda: called(
        discretize_zoh, np.eye(1), np.ones((2, 1)), 1.0
    ),
    "krylov_kernel: leading axes do not broadcast": lambda: called(
        krylov_kernel, np.ones((2, 1, 1)), np.ones((3, 1)), np.ones(1), l=1
    ),
}


@pytest.mark.parametrize("sentence", CALLS)
def test_bad_arguments_of_array_level_mirrors_are_named(sentence):
    with pytest.raises((TypeError, ValueError)) as error:
        CALLS[sentence]()
    assert str(error.value).startswith(sentence)
