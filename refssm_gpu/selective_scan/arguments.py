"""The arguments of selective scans as the kernels take them: one type, channels beside each other.

The inner axis of the batch are the channels that share B and C: all last batch axes that B and C
lack. A block computes several of them. Without such an axis each channel has a block of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from refssm_gpu._launching.arrays import Array, accumulated, blocks, common, expanded, real_type
from refssm_gpu._launching.batch import Batch, batch
from refssm_gpu._launching.kernel import record, target
from refssm_gpu._parts.recurrence import Plan

RESIDENT = 2  # blocks for each multiprocessor, below which time is cut into pieces
FEWEST = 3  # pieces: a cut computes the states twice, so two pieces would gain nothing
SHORTEST = 4  # chunks of a piece
TILE = 16  # states that a channel's threads keep in registers together
STARTS = 8  # the place of x0 among the arguments in the mask
CORES = (1, 1, 1, 2, 2, 0, 1, 0, 1, 1, 1)  # u, dt, A, B, C, D, z, dt_bias, x0, resets, dy
# selective_sizes in selective.cuh
SIZES = record("l", "n", "inner", "span", mask=np.uint32, at_rest=np.int32)


class Given(NamedTuple):
    """What the caller has given; None where the operator has no such argument."""

    u: Array
    dt: Array
    A: Array
    B: Array
    C: Array
    D: Array | None = None
    z: Array | None = None
    dt_bias: Array | None = None
    x0: Array | None = None
    resets: Array | None = None
    dy: Array | None = None


@dataclass(frozen=True)
class Selective:
    """The arguments in one type and one batch; the sizes of blocks follow from the type."""

    given: Given  # each in one piece of memory
    rows: Batch
    split: int  # how many axes of the batch B and C lack
    kind: np.dtype
    at_rest: bool

    @property
    def steps(self) -> int:
        """Steps."""
        return self.given.u.shape[-1]

    @property
    def states(self) -> int:
        """States of a channel."""
        return self.given.A.shape[-1]

    @property
    def inside(self) -> np.dtype:
        """The type of the states."""
        return accumulated(self.kind)

    @property
    def chunk(self) -> int:
        """Steps of a chunk: `division` in selective.cuh."""
        return 32 if self.inside == np.float32 else 16

    @property
    def channels(self) -> int:
        """Channels of a block."""
        return 128 // self.inside.itemsize

    @property
    def groups(self) -> int:
        """Blocks for the channels that share B and C."""
        return blocks(self.rows.inner, self.channels)

    def plan(self) -> Plan:
        """Cut time into pieces if blocks are few."""
        tiles = self.rows.outer * self.groups
        wanted = RESIDENT * target().multiprocessors // max(tiles, 1)
        pieces = min(wanted, self.steps // (SHORTEST * self.chunk)) if self.states else 1
        return self.whole() if pieces < FEWEST else self._cut(pieces)

    def whole(self) -> Plan:
        """Time in one piece."""
        return self._cut(1)

    def _cut(self, pieces: int) -> Plan:
        span = max(1, blocks(blocks(self.steps, pieces), self.chunk)) * self.chunk
        grid = self.rows.outer * self.groups * bool(self.steps), max(1, blocks(self.steps, span))
        fields = (self.steps, self.states, self.rows.inner, span, self.rows.mask, self.at_rest)
        return Plan((self.kind.name,), grid, np.array([fields], SIZES))


def arguments(given: Given, *others: Array, at_rest: bool) -> Selective:
    """Bring the arguments to one type and one batch; `others` belong to the type, too."""
    u, dt, A, B, C, D, *_, x0, _, dy = given
    kind = common(u, dt, A, B, C, D, x0, dy, *others)
    inside, real = accumulated(kind), real_type(kind)
    types = Given(
        u=kind, dt=real, A=inside, B=kind, C=kind, D=inside, z=real,
        dt_bias=real_type(inside), x0=inside, resets=np.uint8, dy=kind,
    )  # fmt: skip
    split, given = _channels(given)
    rows = batch(given, CORES, types, split)
    return Selective(Given(*rows.arrays), rows, split, kind, at_rest)


def _channels(given: Given) -> tuple[int, Given]:
    """How many last batch axes B and C lack, and B and C with all of the others or none."""
    leads = [() if x is None else x.shape[: x.ndim - c] for x, c in zip(given, CORES, strict=True)]
    whole = np.broadcast_shapes(*leads)
    own = np.broadcast_shapes(given.B.shape[:-2], given.C.shape[:-2])
    own = (1,) * (len(whole) - len(own)) + own
    split = next((i for i, size in enumerate(reversed(own)) if size != 1), len(own))
    outer = whole[: len(whole) - split]

    def filled(x: Array) -> Array:
        if prod(x.shape[:-2]) == 1:
            return x
        full = (*outer, *(1,) * split, *x.shape[-2:])
        return expanded(x, full)

    return split, given._replace(B=filled(given.B), C=filled(given.C))
