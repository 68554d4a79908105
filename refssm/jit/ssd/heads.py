"""Heads that share B and C, a few at a time: a kernel reads B and C once for all of them."""

import numpy as np

GROUP = 4  # their states stay in the second cache; fixed, so that sums do not depend on threads


def grouped(own, shared):
    """The arrays of `own`, (array, axes of its core) each, with an axis of heads before the core,
    and the batch axes of all results; `shared` arrays have no such axis.

    It is a part of the last batch axis where no array of `shared` has that axis, else of length 1.
    """
    leading = [a.shape[: a.ndim - core] for a, core in (*own, *shared)]
    batch = np.broadcast_shapes(*leading)
    several = bool(batch) and all(b[-1:] in ((), (1,)) for b in leading[len(own) :])
    many = max(g for g in range(1, GROUP + 1) if batch[-1] % g == 0) if several else 1
    return [_split(a, core, batch, many) for a, core in own], batch


def _split(array, core, batch, many):
    """(…, H, core) as (…, H / many, many, core)."""
    leading, kernel = array.shape[: array.ndim - core], array.shape[array.ndim - core :]
    if many == 1:
        return array.reshape(*leading, 1, *kernel)
    leading = (*leading[:-1], batch[-1] // many, many)
    whole = np.broadcast_to(array, (*array.shape[: -core - 1], batch[-1], *kernel))
    return whole.reshape(*leading, *kernel)
