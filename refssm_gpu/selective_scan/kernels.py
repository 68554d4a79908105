"""Selective scans and their adjoints on the card: selective_scan.cuh and selective_adjoint.cuh.

Where blocks are few, time is cut into pieces: a first launch gives each piece's map, a scan of
refssm_gpu.scan.linear composes the maps, and the last launch starts every piece from its own state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

import numpy as np

from refssm_gpu._launching.arrays import (
    HALVES,
    Array,
    accumulated,
    blocks,
    common,
    empty,
    expanded,
    namespace,
    real_type,
    unbroadcast_and_round,
)
from refssm_gpu._launching.batch import Batch, batch
from refssm_gpu._launching.kernel import FIELDS, Kernel, instances, record, target
from refssm_gpu.scan.linear import ScanPlan, after_pieces, before_pieces

BLOCK = 128
_INSTANCES = instances((*FIELDS, *HALVES))
_SCAN = Kernel(
    "selective_scan/selective_scan.cuh",
    "selective_scan",
    _INSTANCES,
    BLOCK,
    registers=168,
    bound="special functions",
)
_STATES = replace(_SCAN, name="selective_states")
_PIECES = "selective_scan/selective_pieces.cuh"
_TOTALS = replace(_SCAN, source=_PIECES, name="selective_totals")
_ENDS = replace(_SCAN, source=_PIECES, name="selective_back_totals", registers=136)
_ADJOINT = "selective_scan/selective_adjoint.cuh"
_BACK = replace(_SCAN, source=_ADJOINT, name="selective_back", registers=255, bound="flops")
_GATED_BACK = replace(_BACK, name="mamba_back")


class Gradients(NamedTuple):
    """For each argument, with all axes of the batch; dB and dC without those that both lack."""

    u: Array
    dt: Array
    A: Array
    B: Array
    C: Array
    D: Array | None
    z: Array | None
    dt_bias: Array | None
    x0: Array


def scan(given: ScanArguments, *, at_rest: bool) -> tuple[Array, Array]:
    """The outputs, in the type of the arguments, and the last states."""
    s = arguments(given, at_rest=at_rest)
    a, plan = s.given, s.plan()
    y = empty((s.rows.rows, s.steps), s.kind, a.u)
    last = _unmoved(s, given.x0)
    starts, plan = _starts(s, plan, given.x0)
    _SCAN(
        plan.instance, plan.grid, a.u, a.dt, a.A, a.B, a.C, a.D, a.z, a.dt_bias, starts, a.resets,
        y, last, _carry(s, plan), plan.size,
    )  # fmt: skip
    return s.rows.unfolded(y, (s.steps,)), s.rows.unfolded(last, (s.states,))


def gradients(
    given: ScanArguments, dlast: Array | None = None, *, at_rest: bool
) -> tuple[Array, ...]:
    """The gradients of all arguments but resets, shaped like them and in their types."""
    primals = given._replace(resets=None, dy=None)
    made = pulled_back(given, dlast, at_rest=at_rest)
    pairs = [(g, x) for g, x in zip(made, primals, strict=False) if x is not None]
    return unbroadcast_and_round(*zip(*pairs, strict=True))


def pulled_back(given: ScanArguments, dlast: Array | None, *, at_rest: bool) -> Gradients:
    """The gradients from the outputs, `given.dy`, and the last state; None: nobody uses it."""
    s = arguments(given, *(() if dlast is None else (dlast,)), at_rest=at_rest)
    a, plan = s.given, s.plan()
    before = _states(s, plan, given.x0)
    ends = _ends(s, plan, dlast)
    made = _made(s, plan, ends)
    args = (a.dy, a.u, a.dt, a.A, a.B, a.C)
    if a.z is None:
        _BACK(
            plan.instance, plan.grid, *args, before, ends, a.resets, made.u, made.dt, made.A,
            made.B, made.C, made.x0, plan.size,
        )  # fmt: skip
    else:
        _GATED_BACK(
            plan.instance, plan.grid, *args, a.D, a.z, a.dt_bias, before, ends, a.resets, made.u,
            made.dt, made.A, made.B, made.C, made.D, made.z, made.dt_bias, made.x0, plan.size,
        )  # fmt: skip
    return _added(s, made)


def _made(s: Selective, plan: ScanPlan, ends: Array | None) -> Gradients:
    """Memory for the gradients, as the kernel writes them; without steps their values."""
    rows, l, n = s.rows.rows, s.steps, s.states
    real, real_inside = real_type(s.kind), real_type(s.inside)
    gated = s.given.z is not None
    shared = s.groups, s.rows.outer, l, n
    xp = namespace(s.given.u)
    make = xp.empty if l else xp.zeros
    return Gradients(
        u=make((rows, l), dtype=s.kind),
        dt=make((rows, l), dtype=real),
        A=make((rows, plan.pieces, n), dtype=s.inside),
        B=make(shared, dtype=s.inside),
        C=make(shared, dtype=s.inside),
        D=make((rows, plan.pieces), dtype=s.inside) if gated else None,
        z=make((rows, l), dtype=real) if gated else None,
        dt_bias=make((rows, plan.pieces), dtype=real_inside) if gated else None,
        x0=make((rows, plan.pieces, n), dtype=s.inside)
        if l or ends is None
        else +ends,  # not the caller's memory
    )


def _added(s: Selective, made: Gradients) -> Gradients:
    """Sums over pieces and over blocks of channels, with the batch axes of the caller."""
    xp, core = namespace(s.given.u), (s.steps, s.states)
    outer = (*s.rows.shape[: len(s.rows.shape) - s.split], *(1,) * s.split)

    def over_pieces(x: Array | None, *own: int) -> Array | None:
        return None if x is None else s.rows.unfolded(xp.sum(x, axis=1), own)

    return Gradients(
        u=s.rows.unfolded(made.u, (s.steps,)),
        dt=s.rows.unfolded(made.dt, (s.steps,)),
        A=over_pieces(made.A, s.states),
        B=xp.reshape(xp.sum(made.B, axis=0), (*outer, *core)),
        C=xp.reshape(xp.sum(made.C, axis=0), (*outer, *core)),
        D=over_pieces(made.D),
        z=None if made.z is None else s.rows.unfolded(made.z, (s.steps,)),
        dt_bias=over_pieces(made.dt_bias),
        x0=s.rows.unfolded(made.x0[:, 0], (s.states,)),
    )


def _every_row(s: Selective, states: Array | None) -> Array | None:
    """States of each channel, (rows, n), in the type of the computation."""
    return None if states is None else s.rows.every_row(states, 1, s.inside)


def _unmoved(s: Selective, x0: Array | None) -> Array:
    """Memory for the last states; without steps they are the first ones."""
    xp, shape, first = namespace(s.given.u), (s.rows.rows, s.states), _every_row(s, x0)
    if s.steps:
        return empty(shape, s.inside, s.given.u)
    return xp.zeros(shape, dtype=s.inside) if first is None else xp.asarray(first, copy=True)


def _carry(s: Selective, plan: ScanPlan) -> Array | None:
    """Where states wait between chunks, if a thread cannot keep them all."""
    if s.states <= TILE:
        return None
    return empty((s.rows.rows, plan.pieces, s.states), s.inside, s.given.u)


def _starts(s: Selective, plan: ScanPlan, x0: Array | None) -> tuple[Array | None, ScanPlan]:
    """The states before each piece, (rows, pieces, n), and the plan with them."""
    a = s.given
    if plan.pieces == 1:
        return a.x0, plan
    maps = plan.maps(s.rows.rows, s.states, s.inside, a.u)
    _TOTALS(
        plan.instance, plan.grid, a.u, a.dt, a.A, a.B, a.dt_bias, a.resets, *maps,
        _carry(s, plan), plan.size,
    )  # fmt: skip
    before = before_pieces(maps, _every_row(s, x0), at_rest=False)
    return before, plan.from_own_states(STARTS)


def _ends(s: Selective, plan: ScanPlan, dlast: Array | None) -> Array | None:
    """The cotangent that comes in after each piece, (rows, pieces, n); None for zeros."""
    a = s.given
    last = _every_row(s, dlast)
    if plan.pieces == 1:
        return None if last is None else last[:, None]
    maps = plan.maps(s.rows.rows, s.states, s.inside, a.u)
    _ENDS(
        plan.instance, plan.grid, a.dy, a.dt, a.A, a.C, a.z, a.dt_bias, a.resets, *maps, plan.size
    )  # fmt: skip
    return after_pieces(maps, last)


def _states(s: Selective, plan: ScanPlan, x0: Array | None) -> Array:
    """The states before each chunk, (rows, chunks, n)."""
    a = s.given
    starts, plan = _starts(s, plan, x0)
    before = empty((s.rows.rows, blocks(s.steps, s.chunk), s.states), s.inside, a.u)
    _STATES(
        plan.instance, plan.grid, a.u, a.dt, a.A, a.B, a.dt_bias, starts, a.resets, before,
        _carry(s, plan), plan.size,
    )  # fmt: skip
    return before


# Arguments as the kernels take them: one type, channels beside each other
#
# The inner axis of the batch are the channels that share B and C: all last batch axes that B and C
# lack. A block computes several of them. Without such an axis each channel has a block of its own.


RESIDENT = 2  # blocks for each multiprocessor, below which time is cut into pieces
FEWEST = 3  # pieces: a cut computes the states twice, so two pieces would gain nothing
SHORTEST = 4  # chunks of a piece
TILE = 16  # states that a channel's threads keep in registers together
STARTS = 8  # the place of x0 among the arguments in the mask
CORES = (1, 1, 1, 2, 2, 0, 1, 0, 1, 1, 1)  # u, dt, A, B, C, D, z, dt_bias, x0, resets, dy
# selective_sizes in selective.cuh
SIZES = record("l", "n", "inner", "span", mask=np.uint32, at_rest=np.int32)


class ScanArguments(NamedTuple):
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

    given: ScanArguments  # each in one piece of memory
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

    def plan(self) -> ScanPlan:
        """Cut time into pieces if blocks are few."""
        tiles = self.rows.outer * self.groups
        wanted = RESIDENT * target().multiprocessors // max(tiles, 1)
        pieces = min(wanted, self.steps // (SHORTEST * self.chunk)) if self.states else 1
        return self.whole() if pieces < FEWEST else self._cut(pieces)

    def whole(self) -> ScanPlan:
        """Time in one piece."""
        return self._cut(1)

    def _cut(self, pieces: int) -> ScanPlan:
        span = max(1, blocks(blocks(self.steps, pieces), self.chunk)) * self.chunk
        grid = self.rows.outer * self.groups * bool(self.steps), max(1, blocks(self.steps, span))
        fields = (self.steps, self.states, self.rows.inner, span, self.rows.mask, self.at_rest)
        return ScanPlan((self.kind.name,), grid, np.array([fields], SIZES))


def arguments(given: ScanArguments, *others: Array, at_rest: bool) -> Selective:
    """Bring the arguments to one type and one batch; `others` belong to the type, too."""
    u, dt, A, B, C, D, *_, x0, _, dy = given
    kind = common(u, dt, A, B, C, D, x0, dy, *others)
    inside, real = accumulated(kind), real_type(kind)
    types = ScanArguments(
        u=kind, dt=real, A=inside, B=kind, C=kind, D=inside, z=real,
        dt_bias=real_type(inside), x0=inside, resets=np.uint8, dy=kind,
    )  # fmt: skip
    split, given = _channels(given)
    rows = batch(given, CORES, types, split)
    return Selective(ScanArguments(*rows.arrays), rows, split, kind, at_rest)


def _channels(given: ScanArguments) -> tuple[int, ScanArguments]:
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
