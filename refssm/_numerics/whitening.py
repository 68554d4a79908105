"""Cholesky's elimination in NumPy, because LAPACK has none in long double: S = L Lᵀ, and L⁻¹ X.

For the small covariances of a filter. The judge tracks its operations one by one.
"""

import numpy as np


def whitened(S, X):
    """The diagonal of L (…, p) and L⁻¹ X, for real symmetric S (…, p, p); NaN where S < 0.

    X (…, p, r) has columns, r > 0. One row after the other: a row of S and X over the root of its
    pivot is a row of Lᵀ and L⁻¹ X; the rows below lose its part.
    """
    p, pivots, rows = S.shape[-1], [], []
    W = np.concatenate([S, X], axis=-1)
    for _ in range(p):
        pivot = np.sqrt(W[..., 0, 0])
        row = W[..., 0, :] / pivot[..., None]
        W = (W - row[..., : W.shape[-2], None] * row[..., None, :])[..., 1:, 1:]
        pivots.append(pivot)
        rows.append(row[..., -X.shape[-1] :])
    if not rows:
        return S.sum(-1), X
    return np.stack(pivots, axis=-1), np.stack(rows, axis=-2)
