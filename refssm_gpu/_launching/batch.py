"""Leading axes for kernels: any broadcast batch as two axes, outer and inner, without copies.

A field names leading axes such as "b d" for the signal and "b" for B: B lacks the inner axis. A
kernel counts rows over (outer, inner) and finds each argument's row by two bits of one mask: does
it have the outer axis, does it have the inner one. Where an argument lacks a part of one of the two
axes, as A (g d) lacks b of (b g) and d, it is expanded along that one in memory first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from refssm_gpu._launching.arrays import Array, contiguous, expanded, namespace

OUTER, INNER = 1, 2
Types = Sequence[np.dtype | type | None]


def in_every_row(argument: int) -> int:
    """The bits in the mask of an argument that every member of the batch has for itself."""
    return (OUTER | INNER) << 2 * argument


@dataclass(frozen=True)
class Batch:
    """The batch `shape` as outer × inner rows, and each argument in one piece of memory."""

    shape: tuple[int, ...]
    outer: int
    inner: int
    arrays: tuple[Any, ...]  # None where the argument is absent
    bits: tuple[int, ...]  # of each argument: OUTER, INNER, both or none

    @property
    def rows(self) -> int:
        """Members of the batch."""
        return self.outer * self.inner

    @property
    def mask(self) -> np.uint32:
        """Two bits for each argument, the first argument's lowest."""
        return np.uint32(sum(b << 2 * i for i, b in enumerate(self.bits)))

    def every_row(self, x: Array, core: int, dtype=None) -> Array:
        """`x` for each member of the batch, (rows, *its last `core` axes), in this type."""
        own = x.shape[x.ndim - core :]
        full = expanded(x, (*self.shape, *own), dtype)
        return namespace(x).reshape(full, (self.rows, *own))

    def unfolded(self, x: Array, core: Sequence[int]) -> Array:
        """An array (outer, inner, *core) with the batch axes of the caller."""
        return namespace(x).reshape(x, (*self.shape, *core))


def batch(
    arrays: Sequence[Array | None],
    cores: Sequence[int],
    types: Types | None = None,
    split: int | None = None,
) -> Batch:
    """Merge the leading axes; `cores` counts the last axes of each array that are not batch.

    Each array is brought to its type of `types`, if given. `split` is the number of batch axes that
    the inner axis takes, 1 by default. An argument that has a part of the outer or of the inner
    axis is expanded along it. An absent argument is None and has neither axis.
    """
    types = [None] * len(arrays) if types is None else types
    leads = [
        () if x is None else x.shape[: x.ndim - core] for x, core in zip(arrays, cores, strict=True)
    ]
    shape = np.broadcast_shapes(*leads)
    split = min(len(shape), 1 if split is None else split)
    outer, inner = shape[: len(shape) - split], shape[len(shape) - split :]
    made, bits = [], []
    for x, core, lead, dtype in zip(arrays, cores, leads, types, strict=True):
        if x is None:
            made.append(None)
            bits.append(0)
            continue
        x = contiguous(x, dtype)
        lead = (1,) * (len(shape) - len(lead)) + lead
        parts = lead[: len(outer)], lead[len(outer) :]
        pairs = list(zip(parts, (outer, inner), strict=True))
        full = [part if prod(part) == 1 else whole for part, whole in pairs]
        if (*full[0], *full[1]) != lead:
            x = expanded(x, (*full[0], *full[1], *x.shape[x.ndim - core :]))
        made.append(x)
        has = [
            part == whole and prod(whole) != 1 for part, (_, whole) in zip(full, pairs, strict=True)
        ]
        bits.append(OUTER * has[0] + INNER * has[1])
    return Batch(shape, prod(outer), prod(inner), tuple(made), tuple(bits))
