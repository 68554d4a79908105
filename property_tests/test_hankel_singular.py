import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import laws

import refssm
from refssm.conformance.cases.drawing import cases
from refssm.conformance.cases.sampling import Choices, at_random
from refssm.hankel import HANKEL_SINGULAR_VALUES_DIAGONAL
from refssm.spectral import SPECTRAL_FILTERS

values = refssm.hankel_singular_values_diagonal
U = 2.0**-53


def systems():
    how = {"sizes": (1, 2, 3, 5, 8), "tame": True}
    sampler = cases(HANKEL_SINGULAR_VALUES_DIAGONAL, "complex128", **how)

    def of_seed(seed):
        return sampler(Choices(at_random(np.random.default_rng(seed))))

    return st.integers(0, 2**32 - 1).map(of_seed)


def normal(sigma):
    """True for values that stay normal numbers after a change by 2^20."""
    return sigma > 2.0**40 * np.finfo(float).tiny


@given(case=systems(), power=st.integers(-10, 10))
@laws
def test_a_gain_goes_through(case, power):
    w, B, C = case.arrays
    sigma, more = values(w, B, C), values(w, B, 2.0**power * C)
    kept = normal(sigma)
    # the residues differ by a power of two; pivoting uses their square roots
    assert (np.abs(more - 2.0**power * sigma) <= 1e-8 * 2.0**power * sigma)[kept].all()


@given(case=systems(), power=st.integers(-10, 10))
@laws
def test_another_unit_of_time_divides(case, power):
    w, B, C = case.arrays
    sigma, faster = values(w, B, C), values(2.0**power * w, B, C)
    kept = normal(sigma)
    assert (np.abs(2.0**power * faster - sigma) <= 1e-8 * sigma)[kept].all()


@given(case=systems())
@laws
def test_b_and_c_are_exchanged_for_nothing(case):
    w, B, C = case.arrays
    sigma, exchanged = values(w, B, C), values(w, C, B)
    kept = normal(sigma)
    assert (np.abs(exchanged - sigma) <= 1e-8 * sigma)[kept].all()  # complex products round


@given(case=systems())
@laws
def test_the_largest_is_at_most_the_sum_of_single_modes(case):
    w, B, C = case.arrays
    alone = np.abs(B * C) / (-2 * w.real)
    assert (values(w, B, C)[..., 0] <= alone.sum(-1) * (1 + 1e-8)).all()  # the operators add


@pytest.mark.parametrize("l", [24, 32, 65])
@pytest.mark.parametrize("k", [1, 8, 24])
def test_filters_are_eigenvectors(l, k):
    sigma, phi = SPECTRAL_FILTERS.reference(l=l, k=k)
    s = np.add.outer(np.arange(1, l + 1), np.arange(1, l + 1)).astype(float)
    residual = phi @ (2 / (s**3 - s)) - sigma[:, None] * phi
    assert np.abs(residual).max() <= 16 * l * U * sigma[0]
