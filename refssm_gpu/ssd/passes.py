"""State-space duality by chunks on the card; ssd.cuh has the formulas.

Outputs take four launches: the chunks' own states, one pass of the state over them, the outputs of
all chunks, and the recurrence for rows whose results are not finite, which returns at once where
there are none. Gradients take the first two in both directions, then one for all chunks and the
recurrence. A single chunk from rest needs no states.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from refssm_gpu._launching.arrays import (
    HALVES,
    Array,
    accumulated,
    blocks,
    common,
    empty,
    namespace,
    unbroadcast_and_round,
)
from refssm_gpu._launching.batch import INNER, Batch, batch, in_every_row
from refssm_gpu._launching.kernel import FIELDS, Kernel, MarkedRows, instances, record, target

BLOCK = 128
RESIDENT = 4  # blocks for each multiprocessor, below which heads do not share one
MOST_HEADS = 8  # that one block goes through with the same C Bᵀ
WARPS = BLOCK // 32
TYPES = (*FIELDS, *HALVES)
# Products are bound by flops in single precision: with n = 128 and p = 64 a chunk's own state is
# 64 · 128 · 64 multiply-adds for 80 KB, and the outputs are more of them for as many bytes. An A100
# computes 12 flops, an H100 20, in the time of a byte; tensor cores (halves) come nearer to memory.
_STATES = Kernel(
    "ssd/ssd_states.cuh",
    "ssd_states",
    instances(TYPES, (0, 1)),
    BLOCK,
    registers=136,
    bound="flops",
)
_PASS = Kernel(
    "ssd/ssd_states.cuh", "ssd_pass", instances(FIELDS, (0, 1)), BLOCK, registers=64, bound="memory"
)
_OUTPUTS = Kernel(
    "ssd/ssd_forward.cuh", "ssd_outputs", instances(TYPES), BLOCK, registers=192, bound="flops"
)
_GRADIENTS = Kernel(
    "ssd/ssd_back.cuh", "ssd_gradients", instances(TYPES), BLOCK, registers=255, bound="flops"
)
_AGAIN = MarkedRows("marks", "whose results by chunks are not finite")
_STEPS = Kernel(
    "ssd/ssd_steps.cuh",
    "ssd_steps",
    instances(TYPES),
    BLOCK,
    registers=96,
    marked=_AGAIN,
    bound="memory",
)
_STEPS_BACK = replace(_STEPS, name="ssd_steps_back", registers=224)


def chunk(kind: np.dtype) -> int:
    """Steps of a chunk, and rows and columns of a tile: what fits in registers."""
    return 64 if kind.itemsize <= 4 else 32


def _rows(x, log_a, B, C, S0, resets) -> SsdRows:
    return rows_of(x, log_a, B, C, S0, resets, chunk(common(x, log_a, B, C, S0)))


def _one_step(x: Array, log_a: Array, B: Array, C: Array, S: Array) -> SsdRows:
    """The arguments of one step as those of a sequence of length 1."""
    return _rows(x[..., None, :], log_a[..., None], B[..., None, :], C[..., None, :], S, None)


def scan(
    x: Array,
    log_a: Array,
    B: Array,
    C: Array,
    S0: Array | None = None,
    resets: Array | None = None,
    *,
    ends: bool = False,
) -> tuple[Array, Array]:
    """All outputs, and the last states, which are undefined unless `ends`."""
    r = _rows(x, log_a, B, C, S0, resets)
    l, p, n = r.core
    y, last = r.new(l, p), r.new(p, n, inside=True)
    marks = namespace(x).zeros(r.rows.rows, dtype=np.uint32)
    states = None
    if ends or r.chunks > 1 or S0 is not None:
        states = _states(r, r.x, 0, r.S0, last, marks)
    tiles = blocks(p, chunk(r.kind))
    heads = _heads(r, r.chunks * tiles)
    _OUTPUTS(
        (r.kind.name,), (r.rows.rows // heads * r.chunks * tiles,),
        r.x, r.log_a, r.B, r.C, r.resets, states, y, marks, r.changed(heads=heads),
    )  # fmt: skip
    _steps(r, marks, y, last)
    return r.rows.unfolded(y, (l, p)), r.rows.unfolded(last, (p, n))


def step(x: Array, log_a: Array, B: Array, C: Array, S: Array) -> tuple[Array, Array]:
    """One step: the output and the next state."""
    r = _one_step(x, log_a, B, C, S)
    _, p, n = r.core
    y, after = r.new(1, p), r.new(p, n, inside=True)
    _steps(r, None, y, after)
    return r.rows.unfolded(y, (p,)), r.rows.unfolded(after, (p, n))


def _steps(r: SsdRows, marks: Array | None, y: Array, last: Array) -> None:
    """The recurrence, for the marked rows or for all."""
    groups = blocks(r.core[1], WARPS)
    _STEPS(
        (r.kind.name,), (r.rows.rows * groups,),
        r.x, r.log_a, r.B, r.C, r.S0, r.resets, marks, y, last, r.size,
    )  # fmt: skip


def _states(
    r: SsdRows, x: Array, back: int, start: Array | None, last: Array, marks: Array
) -> Array:
    """The states before all chunks, or `back` the cotangents after them, from dy as `x`."""
    (_, p, n), tile = r.core, chunk(r.kind)
    states, totals = r.new(r.chunks, p, n, inside=True), r.new(r.chunks, inside=True)
    full = (OF_X, OF_S0) if back else ()
    size = r.changed(full)
    _STATES(
        (r.kind.name, back), (r.rows.rows * r.chunks * blocks(p, tile) * blocks(n, tile),),
        x, r.log_a, r.C if back else r.B, r.resets, states, totals, size,
    )  # fmt: skip
    _PASS(
        (r.inside.name, back), (r.rows.rows * blocks(p * n, BLOCK),),
        states, totals, start, last, marks, size,
    )  # fmt: skip
    return states


def _heads(r: SsdRows, blocks_a_row: int) -> int:
    """How many heads with the same B and C one block goes through: more where blocks are many."""
    if any(r.rows.bits[argument] & INNER for argument in (OF_B, OF_C)):
        return 1
    enough = RESIDENT * target().multiprocessors
    most = min(MOST_HEADS, max(1, r.rows.rows * blocks_a_row // enough))
    return next((h for h in range(most, 0, -1) if r.rows.inner % h == 0), 1)


def gradients(
    dy: Array, dlast: Array | None, *arguments: Array, resets: Array | None = None
) -> tuple[Array, ...]:
    """Gradients of x, log_a, B, C, and of S0 if it is given, in their shapes and types."""
    made = scan_back(dy, dlast, *arguments, resets=resets)
    return unbroadcast_and_round(made[: len(arguments)], arguments)


def scan_back(
    dy: Array,
    dlast: Array | None,
    x: Array,
    log_a: Array,
    B: Array,
    C: Array,
    S0: Array | None = None,
    resets: Array | None = None,
) -> tuple[Array, ...]:
    """Gradients from the outputs and the last states: (dx, dlog_a, dB, dC, dS0) of every row."""
    r = _rows(x, log_a, B, C, S0, resets)
    _, p, n = r.core
    dy = r.rows.every_row(dy, 2, r.kind)
    dlast = None if dlast is None else r.rows.every_row(dlast, 2, r.inside)
    marks = namespace(x).zeros(r.rows.rows, dtype=np.uint32)
    scratch, dS0 = (r.new(p, n, inside=True) for _ in range(2))
    before = after = None
    if r.chunks > 1 or S0 is not None:
        before = _states(r, r.x, 0, r.S0, scratch, marks)
    if r.chunks > 1 or S0 is not None or dlast is not None:
        after = _states(r, dy, 1, dlast, dS0, marks)
    heads = _heads(r, r.chunks)
    made = _gradients_of(r, heads)
    _GRADIENTS(
        (r.kind.name,), (r.rows.rows // heads * r.chunks,),
        dy, r.x, r.log_a, r.B, r.C, r.resets, before, after, *made, marks,
        r.changed(heads=heads),
    )  # fmt: skip
    starts = r.new(r.chunks, p, n, inside=True) if before is None else before
    _steps_back(r, heads, dy, dlast, marks, starts, scratch, (*made, dS0))
    return _unfolded(r, heads, (*made, dS0))


def step_back(
    dy: Array, dafter: Array, x: Array, log_a: Array, B: Array, C: Array, S: Array
) -> tuple[Array, ...]:
    """Gradients of one step: (dx, dlog_a, dB, dC, dS), the first four with a time axis of 1."""
    r = _one_step(x, log_a, B, C, S)
    _, p, n = r.core
    dy = r.rows.every_row(dy[..., None, :], 2, r.kind)
    dafter = r.rows.every_row(dafter, 2, r.inside)
    heads = _heads(r, 1)
    made = (*_gradients_of(r, heads), r.new(p, n, inside=True))
    _steps_back(r, heads, dy, dafter, None, None, r.new(p, n, inside=True), made)
    return _unfolded(r, heads, made)


def _gradients_of(r: SsdRows, heads: int) -> tuple[Array, ...]:
    """Memory for dx and dlog_a of every row, dB and dC of every block's heads together."""
    l, p, n = r.core
    dB, dC = (empty((r.rows.rows // heads, l, n), r.inside, r.x) for _ in range(2))
    return r.new(l, p), r.new(l), dB, dC


def _steps_back(r: SsdRows, heads: int, dy, dlast, marks, starts, scratch, made) -> None:
    """The adjoint recurrence, for heads of which a row is marked, or for all."""
    _STEPS_BACK(
        (r.kind.name,), (r.rows.rows // heads,),
        dy, dlast, r.x, r.log_a, r.B, r.C, r.S0, r.resets, marks, starts, scratch,
        *made, r.changed(heads=heads),
    )  # fmt: skip


def _unfolded(r: SsdRows, heads: int, made: tuple[Array, ...]) -> tuple[Array, ...]:
    """With the batch's axes; in dB and dC the last one counts blocks of heads."""
    (l, p, n), shape = r.core, r.rows.shape
    groups = (*shape[:-1], r.rows.inner // heads) if heads > 1 else shape
    dx, dlog_a, dB, dC, dS0 = made
    return (
        r.rows.unfolded(dx, (l, p)),
        r.rows.unfolded(dlog_a, (l,)),
        dB.reshape(*groups, l, n),
        dC.reshape(*groups, l, n),
        r.rows.unfolded(dS0, (p, n)),
    )


# Arguments as the kernels take them


OF_X, OF_LOG_A, OF_B, OF_C, OF_S0, OF_RESETS = range(6)  # the order of the arguments in the mask
CORES = (2, 1, 2, 2, 2, 1)
# ssd_sizes in ssd.cuh
SIZES = record("l", "p", "n", "inner", "chunks", "heads", mask=np.uint32, at_rest=np.int32)


@dataclass(frozen=True)
class SsdRows:
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
) -> SsdRows:
    """Bring the arguments to one type and one batch; `steps` is the length of a chunk.

    Without S0 a row starts from rest: its first decay multiplies nothing.
    """
    kind = common(x, log_a, B, C, S0)
    types = (kind, kind, kind, kind, accumulated(kind), np.uint8)
    rows = batch((x, log_a, B, C, S0, resets), CORES, types)
    (l, p), n = x.shape[-2:], B.shape[-1]
    fields = (l, p, n, rows.inner, blocks(l, steps), 1, rows.mask, S0 is None)
    x, log_a, B, C, S0, resets = rows.arrays
    return SsdRows(x, log_a, B, C, S0, resets, rows, np.array([fields], SIZES))
