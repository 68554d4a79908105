"""Honest spectral filters: other factors, LAPACK's Jacobi method, the small matrix in mpmath."""

# pyright: reportAttributeAccessIssue=false
# (mpmath attaches its functions to the context at import)

from functools import lru_cache

import numpy as np
from mpmath import mp
from scipy.linalg.lapack import dgejsv

from honest import Honest
from refssm._numerics.takagi import orthogonal_columns, triangular
from refssm.spectral import SPECTRAL_FILTERS

DIGITS, COLUMNS = 120, 50  # what is left of 130 samples after 50 columns is below 1e-37
AHEAD = 24  # filters: the most that are drawn


@lru_cache(16)
def _factor(l):
    """L with L Lᵀ = Z in mpmath, by rows and columns; returns a list of columns."""
    with mp.workdps(DIGITS):
        s = [mp.mpf(i) for i in range(2, 2 * l + 1)]
        Z = [2 / (x * (x - 1) * (x + 1)) for x in s]
        left, columns = [Z[2 * i] for i in range(l)], []
        for _ in range(min(l, COLUMNS)):
            p = max(range(l), key=left.__getitem__)
            root = mp.sqrt(left[p])
            column = [(Z[i + p] - mp.fsum(c[i] * c[p] for c in columns)) / root for i in range(l)]
            left = [x - c * c for x, c in zip(left, column, strict=True)]
            left[p] = -mp.one
            columns.append(column)
        return columns


def _in_double(l):
    """The factor rounded to double precision, (l, r)."""
    return np.array([[float(x) for x in column] for column in _factor(l)]).T


def _oriented(sigma, phi, k):
    """The k largest pairs, with signs such that the last entry of the i-th has sign (−1)^i."""
    order = np.argsort(-sigma, kind="stable")[:k]
    phi = phi[:, order].T
    return sigma[order], phi * (np.sign(phi[:, -1:]) * (-1.0) ** np.arange(k)[:, None])


def lapack_jacobi(*, l, k):
    """LAPACK's preconditioned Jacobi method on the factor."""
    length, phi, _, work, _, _ = dgejsv(_in_double(l), joba=0, jobu=0, jobv=3)
    return _oriented((length * work[0] / work[1]) ** 2, phi, k)


def other_side(*, l, k):
    """Jacobi on the transposed triangle; vectors by a product with the factor."""
    L = _in_double(l)
    R = np.linalg.qr(L, mode="r")
    length, X = orthogonal_columns(triangular(R).T.copy())
    phi = L @ X / length
    return _oriented(length**2, phi / np.sqrt((phi**2).sum(0)), k)


@lru_cache(16)
def _small(l):
    """All eigenpairs of LᵀL in mpmath; vectors by products with L."""
    columns = _factor(l)
    with mp.workdps(DIGITS):
        r = len(columns)
        M = mp.matrix(r)
        for i in range(r):
            for j in range(i + 1):
                pairs = zip(columns[i], columns[j], strict=True)
                M[i, j] = M[j, i] = mp.fsum(x * y for x, y in pairs)
        sigma, X = mp.eigsy(M)
        tops = range(r - 1, r - 1 - min(r, AHEAD), -1)
        L = mp.matrix(columns).T
        vectors = [[float(x) for x in L * X[:, i] / mp.sqrt(sigma[i])] for i in tops]
        return np.array([float(sigma[i]) for i in tops]), np.array(vectors).T


def small_matrix(*, l, k):
    """The filters from the eigenpairs of LᵀL."""
    return _oriented(*_small(l), k)


def without_guard(*, l, k):
    """The reference with one more filter, which is then dropped."""
    sigma, phi = SPECTRAL_FILTERS.reference(l=l, k=min(l, k + 1))
    return sigma[:k], phi[:k]


IMPLEMENTATIONS = [
    Honest("spectral_filters", f.__name__, f)
    for f in (lapack_jacobi, other_side, small_matrix, without_guard)
]
