"""Glover's reduction: the statement of the theorem, its all-pass, bounds, and what is refused."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import refssm
from refssm.hankel.optimal import _all_pass

U = 2.0**-53
CLOSE = 1e-10  # relative: the accuracy that the specification of this function asks for


def ringing(seed, n=6):
    """A system of which no value is far below the others; complex for odd seeds."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n))
    A, (B, C) = X - X.T - np.diag(rng.uniform(0.1, 0.3, n)), rng.standard_normal((2, n))
    if seed % 2:
        Y = rng.standard_normal((n, n))
        A, B = A + 0.5j * (Y + Y.T), B + 1j * rng.standard_normal(n)
    return A, B, C


def difference(whole, reduced):
    (A, B, C), (a, b, c, *_) = whole, reduced
    return block_diag(A, a), np.append(B, b), np.append(C, -c)


@pytest.mark.parametrize("order", range(1, 6))
@pytest.mark.parametrize("seed", range(6))
def test_the_distance_in_the_hankel_norm_is_the_first_value_left_out(seed, order):
    whole = ringing(seed)
    sigma = refssm.hankel_singular_values(*whole)
    reduced = refssm.hankel_norm_reduction(*whole, order)
    away = refssm.hankel_norm(*difference(whole, reduced))
    assert abs(away - sigma[order]) <= CLOSE * sigma[order]
    assert (np.linalg.eigvals(reduced[0]).real < 0).all()
    truncated = refssm.balanced_truncation(*whole, order)
    beside = refssm.hankel_norm(*difference(whole, truncated))
    assert beside >= sigma[order] * (1 - CLOSE)  # no system of that order is nearer


@pytest.mark.parametrize("order", range(1, 6))
@pytest.mark.parametrize("seed", range(6))
def test_the_largest_error_is_within_both_bounds(seed, order):
    whole = ringing(seed)
    sigma = refssm.hankel_singular_values(*whole)
    *reduced, D = refssm.hankel_norm_reduction(*whole, order)
    apart = difference(whole, reduced)
    room = 1 + CLOSE
    assert refssm.h_infinity_norm(*apart, -D) <= room * (
        sigma[order] + 2 * sigma[order + 1 :].sum()
    )
    most = refssm.balanced_truncation_bound(*whole, order)
    assert refssm.h_infinity_norm(*apart, 0.0) <= room * most


def test_without_the_last_state_the_error_has_one_modulus_at_every_frequency():
    whole = ringing(2)
    a, b, c, D = refssm.hankel_norm_reduction(*whole, 5)
    s = 1j * np.linspace(-20, 20, 401)
    error = refssm.transfer(*whole, 0.0, s) - refssm.transfer(a, b, c, D, s)
    sigma = refssm.hankel_singular_values(*whole)[5]
    assert np.abs(np.abs(error) - sigma).max() <= CLOSE * sigma
    assert abs(abs(D) - sigma) <= CLOSE * sigma


def test_one_state_of_two_is_found_by_hand():
    # balanced: A_ij = −b_i b_j/(σ_i + σ_j) with C = B, σ = (2, 1), b = (2, 1): U = −1, and
    # Â = (a + 4 a + b²)/3, B̂ = (2 b − b)/3, Ĉ = 2 b − b, with a = −1, b = 2
    sigma, b = np.array([2.0, 1.0]), np.array([2.0, 1.0])
    A = -np.outer(b, b) / np.add.outer(sigma, sigma)
    a_hat, b_hat, c_hat, D = _all_pass(A[:1, :1], b[:1], b[:1], sigma[:1], 1.0, b[1:], b[1:])
    assert (a_hat.tolist(), b_hat.tolist(), c_hat.tolist(), D) == ([[-1 / 3]], [2 / 3], [2.0], 1.0)
    a, b_r, c_r, _ = refssm.hankel_norm_reduction(A, b, b, 1)
    assert abs(a[0, 0] + 1 / 3) <= CLOSE
    assert abs(b_r[0] * c_r[0] - 4 / 3) <= CLOSE


def test_states_that_no_input_reaches_are_left_out_and_batches_are_reduced_one_by_one():
    A, B, C = ringing(4, n=4)
    larger = block_diag(A, -np.eye(1)), np.append(B, 0), np.append(C, 1)
    sigma = refssm.hankel_singular_values(A, B, C)
    reduced = refssm.hankel_norm_reduction(*larger, 2)
    assert abs(refssm.hankel_norm(*difference((A, B, C), reduced)) - sigma[2]) <= CLOSE * sigma[2]
    many = refssm.hankel_norm_reduction(np.stack([A, A]), B, np.stack([C, 2 * C]), 2)
    one = refssm.hankel_norm_reduction(A, B, C, 2)
    assert [x.shape for x in many] == [(2, 2, 2), (2, 2), (2, 2), (2,)]
    assert all(np.array_equal(x[0], y) for x, y in zip(many, one, strict=True))


def test_mistakes_and_equal_values_are_refused_by_name():
    A, B, C = ringing(0)
    with pytest.raises(ValueError, match=r"^hankel_norm_reduction: `order` .* from 1 to 5, got 6"):
        refssm.hankel_norm_reduction(A, B, C, 6)
    with pytest.raises(ValueError, match=r"^hankel_norm_reduction: `A` must have all eigenvalues"):
        refssm.hankel_norm_reduction(-A, B, C, 2)
    # so far apart in frequency that the modes hardly meet: both values are ½ up to 1e-12
    pair = np.diag([-1 + 1e12j, -1 - 1e12j]), np.ones(2), np.ones(2)
    with pytest.raises(ValueError, match="divides equal values"):
        refssm.hankel_norm_reduction(*pair, 1)
    with pytest.raises(ValueError, match="σ_2 is 0: 1 states are enough"):
        refssm.hankel_norm_reduction(np.diag([-1.0, -2.0]), [1.0, 0.0], [1.0, 0.0], 1)
