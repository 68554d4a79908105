"""Conditions on whole arrays, where a domain's `fit` makes them hold: true if they do.

Each holds for what `fit` returns, after it was rounded to any judged type.
"""

import numpy as np


def short(k):
    """Keys of norm at most 1."""
    return bool(((np.abs(k).astype(float) ** 2).sum(-1) <= 1).all())


def short_for_chunks(w):
    """Rows of norm at most 1/(l m), and one rounding to bfloat16 more."""
    steps = max(w.shape[-3] * w.shape[-2], 1)
    return short(w.astype(float) * steps / (1 + 2.0**-8))


def not_rising(g):
    """Running sums of logarithms of gates, time last."""
    return bool((g <= 0).all() and (np.diff(g, axis=-1) <= 0).all())


def not_rising_of_keys(g):
    """The same, time before keys."""
    return not_rising(np.swapaxes(g, -1, -2))


def products(L):
    """0 on and above the diagonal, moduli to 2 below it."""
    return bool((np.triu(L) == 0).all() and (np.abs(L) <= 2).all())


def unit_lower(X):
    """1 on the diagonal, 0 above it."""
    return bool((np.triu(X) == np.eye(X.shape[-1])).all())


def decaying(A):
    """All eigenvalues are left of the imaginary axis."""
    return not A.size or bool((np.linalg.eigvals(A).real < 0).all())


def bounded(a):
    """|Π a| ≤ 2^61 over any span of time: `products_bounded`, and what rounding adds."""
    with np.errstate(divide="ignore"):
        total = np.cumsum(np.maximum(np.log2(np.abs(a).astype(float)), -1e4), axis=-2)
    lowest = np.minimum(np.minimum.accumulate(total, axis=-2), 0)
    return bool((total - lowest <= 61).all())


def positive_definite(X):
    """Symmetric, with a diagonal that outweighs the rest of each row."""
    diagonal = np.abs(X * np.eye(X.shape[-1])).sum(-1)
    symmetric = np.array_equal(X, X.swapaxes(-1, -2))
    return bool(symmetric and (2 * diagonal > np.abs(X).sum(-1)).all())
