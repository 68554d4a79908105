"""Spectral filters: the top eigenpairs of the matrix of spectral state-space models [agarwal2023].

    Z_ij = 2/((i+j)³ − (i+j)) = ∫₀¹ x^{i−1} x^{j−1} (1 − x)² dx,    i, j = 1 … l

Its eigenvalues fall exponentially: at l = 64 the 20th is 4e-19 of the first; `eigh` cannot separate
it from zero. They come from a factor: Z = L Lᵀ by Cholesky's method with complete pivoting, in
integers, because Schur complements of Z cancel. The columns of L have very different lengths and
are far from parallel; one-sided Jacobi rotates them until they are orthogonal. Their squared
lengths are the eigenvalues, their directions the eigenvectors; small ones are as accurate as large
ones [demmel1992].
"""

import numpy as np

from refssm._declaration.contract import INVARIANTS, Invariant
from refssm._declaration.operator import Operator
from refssm._numerics.takagi import orthogonal_columns
from refssm.domains import filter_counts, filter_lengths

GUARD = 64  # bits beyond the last pivot: below the rounding errors of the result


def spectral_filters(*, l, k):
    """The k largest eigenvalues of Z, descending, and their eigenvectors, one per row.

    Signature ``->(k),(k,l)``: `sigma`, `phi`, float64, the first entry of every eigenvector
    positive (it is never 0: the matrix is oscillatory). Every eigenvalue is accurate to nearly all
    digits, even below u times the first. Time grows like l·r², memory like l·r, with r pivots,
    about 2k.

    Raises ValueError if `l` or `k` is not an integer ≥ 1, or `k` is above `l`. Source:
    [agarwal2023].

    >>> import refssm
    >>> sigma, phi = refssm.spectral_filters(l=64, k=24)
    >>> sigma[[0, 1, 23]]
    array([3.60393338e-01, 2.24522460e-02, 6.79564417e-24])
    """
    bits, factor = 2 * GUARD, None
    while factor is None:
        bits, factor = 2 * bits, _factor(l, k, bits)
    length, directions = orthogonal_columns(factor)
    order = np.argsort(-length, kind="stable")[:k]
    phi = directions[:, order].T
    return length[order] ** 2, np.ascontiguousarray(phi * _signs(phi)[:, None])


def _signs(phi):
    """Signs of the first entries. If a first entry is tiny, the last one times (−1)^i has its sign.

    The i-th eigenvector of an oscillatory matrix changes its sign i times [gantmacher2002].
    """
    first, last = phi[:, 0], phi[:, -1] * (-1.0) ** np.arange(len(phi))
    return np.where(np.where(np.abs(first) > np.abs(last), first, last) < 0, -1, 1)


def _factor(l, k, bits):
    """L (l, r) with L Lᵀ = Z, in integers with so many bits; None if the bits are too few.

    Adds columns until the trace of the remainder of Z is below 2^−GUARD times the k-th pivot.
    """
    s = np.arange(2, 2 * l + 1, dtype=object)
    Z, i = (2 << bits) // (s**3 - s), np.arange(l)  # indexed by i + j
    left, columns, pivots = Z[2 * i], [], []
    while len(columns) < l:
        p = int(np.argmax(left))
        if left[p] >> GUARD == 0:
            return None
        column = Z[i + p]
        for c, d in zip(columns, pivots, strict=True):
            column = column - (c * ((c[p] << bits) // d) >> bits)
        columns, pivots = [*columns, column], [*pivots, left[p]]
        left = left - (column * ((column << bits) // left[p]) >> bits)
        left[p] = 0
        if len(columns) >= k and left.sum() <= pivots[k - 1] >> GUARD:
            break
    one = 1 << bits
    scaled = (c / one / np.sqrt(d / one) for c, d in zip(columns, pivots, strict=True))
    return np.stack([c.astype(float) for c in scaled], axis=-1)


def filter_invariants(sigma, phi, **_):
    """Each eigenvalue by itself, however small, and each eigenvector; the sign is fixed."""
    values = (Invariant(f"eigenvalue {i}", s, abs(float(s))) for i, s in enumerate(sigma))
    vectors = (Invariant(f"eigenvector {i}", x, 1.0) for i, x in enumerate(phi))
    return (*values, *vectors, Invariant("basis", phi @ phi.T, 1.0))


SPECTRAL_FILTERS = Operator(
    reference=spectral_filters,
    signature="->(k),(k,l)",
    inputs={},
    parameters={"l": filter_lengths, "k": filter_counts},
    outputs=("sigma", "phi"),
    contract=INVARIANTS,
    definition=filter_invariants,
    citation="agarwal2023",
    lacks=frozenset({"vjp", "jit", "gpu", "enclosure"}),  # runs once: no mirror needed
    tags=("get_spectral_filters", "STU", "spectral transform unit", "spectral filtering"),
)
spectral_filters = SPECTRAL_FILTERS.checked(spectral_filters)
