"""State-space duality by chunks on the card; ssd.cuh has the formulas.

Outputs take four launches: the chunks' own states, one pass of the state over them, the outputs of
all chunks, and the recurrence for rows whose results are not finite, which returns at once where
there are none. Gradients take the first two in both directions, then one for all chunks and the
recurrence. A single chunk from rest needs no states.
"""

from __future__ import annotations

import numpy as np

from refssm_gpu._launching.arrays import HALVES, Array, blocks, common, namespace
from refssm_gpu._launching.batch import INNER
from refssm_gpu._launching.kernel import FIELDS, Kernel, instances
from refssm_gpu._launching.target import target
from refssm_gpu.ssd.rows import OF_B, OF_C, OF_S0, OF_X, Rows, rows_of

BLOCK = 128
RESIDENT = 4  # blocks for each multiprocessor, below which heads do not share one
MOST_HEADS = 8  # that one block goes through with the same C Bᵀ
WARPS = BLOCK // 32
TYPES = (*FIELDS, *HALVES)
_STATES = Kernel("ssd_states.cuh", "ssd_states", instances(TYPES, (0, 1)), BLOCK, registers=136)
_PASS = Kernel("ssd_states.cuh", "ssd_pass", instances(FIELDS, (0, 1)), BLOCK, registers=64)
_OUTPUTS = Kernel("ssd_forward.cuh", "ssd_outputs", instances(TYPES), BLOCK, registers=192)
_GRADIENTS = Kernel("ssd_back.cuh", "ssd_gradients", instances(TYPES), BLOCK, registers=224)
_STEPS = Kernel("ssd_steps.cuh", "ssd_steps", instances(TYPES), BLOCK, registers=96)
_STEPS_BACK = Kernel("ssd_steps.cuh", "ssd_steps_back", instances(TYPES), BLOCK, registers=208)


def chunk(kind: np.dtype) -> int:
    """Steps of a chunk, and rows and columns of a tile: what fits in registers."""
    return 64 if kind.itemsize <= 4 else 32


def _rows(x, log_a, B, C, S0, resets) -> Rows:
    arguments = [a for a in (x, log_a, B, C, S0) if a is not None]
    return rows_of(x, log_a, B, C, S0, resets, chunk(common(*arguments)))


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
    """All outputs, and the last states, which hold nothing unless `ends`."""
    r = _rows(x, log_a, B, C, S0, resets)
    l, p, n = r.core
    y, last = r.new(l, p), r.new(p, n, inside=True)
    marks = namespace(x).zeros(r.rows.rows, dtype=np.uint32)
    states = None
    if ends or r.chunks > 1 or S0 is not None:
        states = _states(r, r.x, 0, r.S0, last, marks)
    heads = _heads(r)
    _OUTPUTS(
        (r.kind.name,), (r.rows.rows // heads * r.chunks * blocks(p, chunk(r.kind)),),
        r.x, r.log_a, r.B, r.C, r.resets, states, y, marks, r.changed(heads=heads),
    )  # fmt: skip
    _steps(r, marks, y, last)
    return r.rows.unfolded(y, (l, p)), r.rows.unfolded(last, (p, n))


def step(x: Array, log_a: Array, B: Array, C: Array, S: Array) -> tuple[Array, Array]:
    """One step: the output and the next state."""
    r = _rows(x[..., None, :], log_a[..., None], B[..., None, :], C[..., None, :], S, None)
    _, p, n = r.core
    y, after = r.new(1, p), r.new(p, n, inside=True)
    _steps(r, None, y, after)
    return r.rows.unfolded(y, (p,)), r.rows.unfolded(after, (p, n))


def _steps(r: Rows, marks: Array | None, y: Array, last: Array) -> None:
    """The recurrence, for the marked rows or for all."""
    groups = blocks(r.core[1], WARPS)
    _STEPS(
        (r.kind.name,), (r.rows.rows * groups,),
        r.x, r.log_a, r.B, r.C, r.S0, r.resets, marks, y, last, r.size,
    )  # fmt: skip


def _states(r: Rows, x: Array, back: int, start: Array | None, last: Array, marks: Array) -> Array:
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


def _heads(r: Rows) -> int:
    """How many heads with the same B and C one block goes through: more where blocks are many."""
    if any(r.rows.bits[argument] & INNER for argument in (OF_B, OF_C)):
        return 1
    enough = RESIDENT * target().multiprocessors
    members = r.rows.rows * r.chunks * blocks(r.core[1], chunk(r.kind))
    most = min(MOST_HEADS, max(1, members // enough))
    return next((h for h in range(most, 0, -1) if r.rows.inner % h == 0), 1)


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
    dy = r.every_row(dy, 2, r.kind)
    dlast = None if dlast is None else r.every_row(dlast, 2, r.inside)
    marks = namespace(x).zeros(r.rows.rows, dtype=np.uint32)
    scratch, dS0 = (r.new(p, n, inside=True) for _ in range(2))
    before = after = None
    if r.chunks > 1 or S0 is not None:
        before = _states(r, r.x, 0, r.S0, scratch, marks)
    if r.chunks > 1 or S0 is not None or dlast is not None:
        after = _states(r, dy, 1, dlast, dS0, marks)
    gradients = _gradients_of(r)
    _GRADIENTS(
        (r.kind.name,), (r.rows.rows * r.chunks,),
        dy, r.x, r.log_a, r.B, r.C, r.resets, before, after, *gradients, marks, r.size,
    )  # fmt: skip
    starts = r.new(r.chunks, p, n, inside=True) if before is None else before
    _steps_back(r, dy, dlast, marks, starts, scratch, (*gradients, dS0))
    return _unfolded(r, (*gradients, dS0))


def step_back(
    dy: Array, dafter: Array, x: Array, log_a: Array, B: Array, C: Array, S: Array
) -> tuple[Array, ...]:
    """Gradients of one step: (dx, dlog_a, dB, dC, dS), the first four with a time axis of 1."""
    r = _rows(x[..., None, :], log_a[..., None], B[..., None, :], C[..., None, :], S, None)
    _, p, n = r.core
    dy = r.every_row(dy[..., None, :], 2, r.kind)
    dafter = r.every_row(dafter, 2, r.inside)
    gradients = (*_gradients_of(r), r.new(p, n, inside=True))
    _steps_back(r, dy, dafter, None, None, r.new(p, n, inside=True), gradients)
    return _unfolded(r, gradients)


def _gradients_of(r: Rows) -> tuple[Array, ...]:
    """Memory for dx, dlog_a, dB and dC of every row; the last two are added up over heads."""
    l, p, n = r.core
    return r.new(l, p), r.new(l), r.new(l, n, inside=True), r.new(l, n, inside=True)


def _steps_back(r: Rows, dy, dlast, marks, starts, scratch, gradients) -> None:
    """The adjoint recurrence, for the marked rows or for all."""
    _STEPS_BACK(
        (r.kind.name,), (r.rows.rows,),
        dy, dlast, r.x, r.log_a, r.B, r.C, r.S0, r.resets, marks, starts, scratch,
        *gradients, r.size,
    )  # fmt: skip


def _unfolded(r: Rows, gradients: tuple[Array, ...]) -> tuple[Array, ...]:
    l, p, n = r.core
    cores = (l, p), (l,), (l, n), (l, n), (p, n)
    return tuple(r.rows.unfolded(g, core) for g, core in zip(gradients, cores, strict=True))
