"""Products of matrices as plain sums of NumPy, so that no BLAS changes a measured bound."""

import numpy as np


def times(A, x):
    """A x: (…, n, k), (…, k) -> (…, n)."""
    return (A * x[..., None, :]).sum(-1)


def product(A, M):
    """A M: (…, n, k), (…, k, m) -> (…, n, m)."""
    return np.einsum("...nk,...km->...nm", A, M)


def adjoint(A):
    """Aᴴ."""
    return A.conj().swapaxes(-1, -2)
