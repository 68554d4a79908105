"""Leading axes for kernels: each argument keeps its own rows, and a table says which row it uses.

A table has one 64-bit number for each row of the whole batch, so no broadcast array is copied.
"""

from math import prod
from typing import Any

import numpy as np

from refssm_gpu._launching.arrays import contiguous, empty, namespace


class Batch:
    """The broadcast leading axes of a call; `cores` counts each array's last axes."""

    def __init__(self, arrays, cores):
        leads = [x.shape[: x.ndim - core] for x, core in zip(arrays, cores, strict=True)]
        self.shape: tuple[int, ...] = np.broadcast_shapes(*leads)
        self.rows = prod(self.shape)
        self.like = arrays[0]

    def given(self, x, core: int, dtype) -> tuple[Any, Any]:
        """The rows of `x`, one after another in this type, and the table of them."""
        xp = namespace(x)
        lead, own = x.shape[: x.ndim - core], x.shape[x.ndim - core :]
        table = xp.arange(prod(lead), dtype=xp.int64)
        table = xp.broadcast_to(xp.reshape(table, lead), self.shape)
        rows = contiguous(xp.reshape(x, (prod(lead), *own)), dtype)
        return rows, contiguous(xp.reshape(table, (self.rows,)))

    def new(self, core, dtype):
        """Memory for an output of all rows."""
        return empty((self.rows, *core), dtype, self.like)

    def unfolded(self, y):
        """An output of all rows with the batch axes of the caller."""
        return namespace(y).reshape(y, (*self.shape, *y.shape[1:]))


def power_of_two(least: int, most: int) -> int:
    """The smallest power of two that is at least `least`, but no more than `most`."""
    return min(most, 1 << max(0, least - 1).bit_length())
