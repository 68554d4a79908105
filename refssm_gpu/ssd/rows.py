"""The arguments of state-space duality as its kernels take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refssm_gpu._launching.arrays import (
    Array,
    accumulated,
    blocks,
    common,
    contiguous,
    empty,
    is_complex,
    namespace,
    unbroadcast_each,
)
from refssm_gpu._launching.batch import INNER, OUTER, Batch, batch

FULL = OUTER | INNER
OF_X, OF_LOG_A, OF_B, OF_C, OF_S0, OF_RESETS = range(6)  # the order of the arguments in the mask
CORES = (2, 1, 2, 2, 2, 1)
SIZES = np.dtype(
    [(name, np.int64) for name in ("l", "p", "n", "inner", "chunks", "heads")]
    + [("mask", np.uint32), ("at_rest", np.int32)]
)  # ssd_sizes in ssd.cuh


@dataclass(frozen=True)
class Rows:
    """All arguments in one type and one batch; `S0` and `resets` may be None."""

    x: Array
    log_a: Array
    B: Array
    C: Array
    S0: Array | None
    resets: Array | None
    rows: Batch
    size: Any  # one record, passed to kernels by value

    @property
    def kind(self) -> np.dtype:
        """The type of all but states."""
        return self.x.dtype

    @property
    def inside(self) -> np.dtype:
        """The type of states: halves are computed in single precision."""
        return accumulated(self.kind)

    @property
    def core(self) -> tuple[int, int, int]:
        """The sizes (l, p, n)."""
        l, p, n = (int(self.size[name][0]) for name in ("l", "p", "n"))
        return l, p, n

    @property
    def chunks(self) -> int:
        """Chunks of each row."""
        return int(self.size["chunks"][0])

    def changed(self, full: tuple[int, ...] = (), **fields) -> Any:
        """The sizes with other numbers, and with the arguments `full` in every row."""
        size = self.size.copy()
        for name, value in fields.items():
            size[name] = value
        for argument in full:
            size["mask"] |= FULL << 2 * argument
        return size

    def new(self, *core: int, inside: bool = False) -> Array:
        """Memory for each row, in the type of states if `inside`."""
        return empty((self.rows.rows, *core), self.inside if inside else self.kind, self.x)

    def every_row(self, array: Array, core: int, dtype: np.dtype) -> Array:
        """`array`, with `core` axes behind its batch, for each row."""
        shape = (*self.rows.shape, *array.shape[array.ndim - core :])
        return contiguous(namespace(array).broadcast_to(array, shape), dtype)


def rows_of(
    x: Array, log_a: Array, B: Array, C: Array, S0: Array | None, resets: Array | None, steps: int
) -> Rows:
    """Bring the arguments to one type and one batch; `steps` is the length of a chunk.

    Without S0 a row starts from rest: its first decay multiplies nothing.
    """
    kind = common(*(a for a in (x, log_a, B, C, S0) if a is not None))
    own = [contiguous(a, kind) for a in (x, log_a, B, C)]
    S0 = None if S0 is None else contiguous(S0, accumulated(kind))
    resets = None if resets is None else contiguous(resets, np.uint8)
    rows = batch((*own, S0, resets), CORES)
    (l, p), n = x.shape[-2:], B.shape[-1]
    fields = (l, p, n, rows.inner, blocks(l, steps), 1, rows.mask, S0 is None)
    x, log_a, B, C, S0, resets = rows.arrays
    return Rows(x, log_a, B, C, S0, resets, rows, np.array([fields], SIZES))


def state_of(S: Array, *arguments: Array) -> Array:
    """S in the arguments' precision; real where all that it is made of is real: C may not be."""
    if is_complex(S) and not any(map(is_complex, arguments)):
        return namespace(S).real(S).copy()
    return S.astype(common(*arguments), copy=False)


def given_back(gradients: Sequence[Array], arguments: Sequence[Array]) -> tuple[Array, ...]:
    """Each gradient summed over the broadcast axes of its argument, in that argument's type."""
    pairs = zip(unbroadcast_each(gradients, arguments), arguments, strict=True)
    return tuple(g.astype(a.dtype, copy=False) for g, a in pairs)
