"""Spectral filters: accuracy of small eigenvalues, signs, values that `eigh` cannot resolve."""

import numpy as np
import pytest

import refssm
from refssm import oracle
from refssm.spectral import SPECTRAL_FILTERS

U = 2.0**-53
exact = SPECTRAL_FILTERS.implementation("oracle")


def matrix(l):
    s = np.add.outer(np.arange(1, l + 1), np.arange(1, l + 1)).astype(float)
    return 2 / (s**3 - s)


@pytest.mark.long
@pytest.mark.parametrize(("l", "k"), [(1, 1), (2, 2), (5, 5), (24, 24), (32, 32), (64, 24)])
def test_every_eigenpair_is_that_of_the_matrix_however_small_the_eigenvalue(l, k):
    sigma, phi = refssm.spectral_filters(l=l, k=k)
    with oracle.mp.workdps(oracle.VALUE_DIGITS):
        wanted, vectors = exact(l=l, k=k)
    wanted, vectors = np.array(wanted, float), np.array(vectors, float)
    assert (np.abs(sigma - wanted) <= 16 * l * U * wanted).all()  # the judge's tolerance
    assert (np.sqrt(((phi - vectors) ** 2).sum(1)) <= 16 * l * U).all()


def test_eigh_has_no_digits_from_the_twenty_first_on():
    sigma, _ = refssm.spectral_filters(l=64, k=24)
    theirs = np.linalg.eigvalsh(matrix(64))[::-1][:24]
    assert sigma[19] < U * sigma[0]
    assert (np.abs(theirs - sigma)[20:] > 0.5 * sigma[20:]).all()


def test_vectors_are_orthonormal_and_begin_above_zero():
    _, phi = refssm.spectral_filters(l=100, k=16)
    assert np.abs(phi @ phi.T - np.eye(16)).max() <= 16 * 100 * U
    assert (phi[:, 0] > 0).all()


def test_the_i_th_vector_changes_its_sign_i_times():
    _, phi = refssm.spectral_filters(l=64, k=12)
    assert [(np.diff(np.sign(x)) != 0).sum() for x in phi] == [*range(12)]


def test_all_eigenvalues_add_up_to_the_trace():
    sigma, _ = refssm.spectral_filters(l=16, k=16)
    assert abs(sigma.sum() - np.trace(matrix(16))) <= 16 * 16 * U * sigma[0]


def test_more_filters_leave_the_first_ones():
    few, more = (refssm.spectral_filters(l=48, k=k) for k in (4, 20))
    assert (np.abs(few[0] - more[0][:4]) <= 16 * 48 * U * few[0]).all()
    assert np.abs(few[1] - more[1][:4]).max() <= 16 * 48 * U


def test_more_filters_than_samples_are_refused():
    with pytest.raises(
        ValueError, match="spectral_filters: `k` must be an integer from 1 to l, got 5"
    ):
        refssm.spectral_filters(l=4, k=5)
