"""Sigmoid functions of the GPU mirrors where the exponential overflows, at infinity and NaN."""

import numpy as np
import pytest

from refssm import activations
from refssm_gpu._algebra import activations as mirrored

X = np.array([-np.inf, -1e4, -100, -0.5, 0, 0.5, 100, 1e4, np.inf, np.nan])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sigmoid", "softplus"])
def test_ends_and_nan_are_those_of_the_reference(name, dtype):
    x = X.astype(dtype)
    y = getattr(mirrored, name)(x)
    assert y.dtype == dtype
    np.testing.assert_array_max_ulp(y[:-1], getattr(activations, name)(x)[:-1], 2)
    assert np.isnan(y[-1])
