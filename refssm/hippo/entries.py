"""Helpers of the closed forms: indices as floating-point numbers, signs, sizes."""

import numpy as np

from refssm.domains import orders


def rows_and_columns(n):
    """i as a column and k as a row, as floating-point numbers in double precision."""
    k = np.arange(n, dtype=np.float64)
    return k[:, None], k


def alternating(power):
    """(−1)^power."""
    return np.where(power % 2, -1.0, 1.0)


def size(name, n) -> int:
    """`n` for a function without a declaration; ValueError with `name` for an invalid size."""
    if not orders.admits(n):
        raise ValueError(f"{name}: `n` must be {orders.wanted}, got {n!r}")
    return int(n)
