"""The arguments of state-space duality as its kernels take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from refssm_gpu._launching.arrays import Array, accumulated, blocks, common, empty
from refssm_gpu._launching.batch import Batch, batch, in_every_row
from refssm_gpu._launching.kernel import record

OF_X, OF_LOG_A, OF_B, OF_C, OF_S0, OF_RESETS = range(6)  # the order of the arguments in the mask
CORES = (2, 1, 2, 2, 2, 1)
# ssd_sizes in ssd.cuh
SIZES = record("l", "p", "n", "inner", "chunks", "heads", mask=np.uint32, at_rest=np.int32)


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
            size["mask"] |= in_every_row(argument)
        return size

    def new(self, *core: int, inside: bool = False) -> Array:
        """Memory for each row, in the type of states if `inside`."""
        return empty((self.rows.rows, *core), self.inside if inside else self.kind, self.x)


def rows_of(
    x: Array, log_a: Array, B: Array, C: Array, S0: Array | None, resets: Array | None, steps: int
) -> Rows:
    """Bring the arguments to one type and one batch; `steps` is the length of a chunk.

    Without S0 a row starts from rest: its first decay multiplies nothing.
    """
    kind = common(x, log_a, B, C, S0)
    types = (kind, kind, kind, kind, accumulated(kind), np.uint8)
    rows = batch((x, log_a, B, C, S0, resets), CORES, types)
    (l, p), n = x.shape[-2:], B.shape[-1]
    fields = (l, p, n, rows.inner, blocks(l, steps), 1, rows.mask, S0 is None)
    x, log_a, B, C, S0, resets = rows.arrays
    return Rows(x, log_a, B, C, S0, resets, rows, np.array([fields], SIZES))
