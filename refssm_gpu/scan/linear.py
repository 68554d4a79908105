"""CuPy mirrors of refssm.scan.linear: one launch for each direction.

`scan` and `scan_back` are x_k = a_k x_{k-1} + b_k and its adjoint on the card, for all that contain
a scan. The kernels are those of `linear_scan.cuh`. Where rows are too few for the card, time is cut
into pieces: the first launch composes each piece to one map, the second scans these maps, and the
third scans all pieces at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from refssm.scan import LINEAR_STEP
from refssm.scan.linear import LINEAR
from refssm_gpu._launching.arrays import (
    HALVES,
    Array,
    accumulated,
    blocks,
    common,
    contiguous,
    empty,
    namespace,
    unbroadcast_each,
)
from refssm_gpu._launching.batch import Batch, batch, in_every_row
from refssm_gpu._launching.checked import WITH_HALVES, mirror
from refssm_gpu._launching.kernel import FIELDS, Instance, Kernel, record, target


def _run(arguments, x0, resets):
    """All states; halves are computed in single precision."""
    a, b = arguments
    return (scan(a, b, x0, resets, at_rest=x0 is None),)


def _back(cotangents, arguments, x0, resets):
    (dx,), (a, b) = cotangents, arguments
    x = scan(a, b, x0, resets, at_rest=x0 is None)
    back = scan_back(dx, a, x, x0, resets, at_rest=x0 is None)
    if x0 is None:
        return unbroadcast_each(back[:2], (a, b))
    da, db, dx0 = unbroadcast_each(back, (a, b, x0))
    return da, db, dx0.astype(x0.dtype, copy=False)  # of halves it was single precision


(
    (linear_scan, linear_scan_vjp),
    (linear_scan_from, linear_scan_from_vjp),
    (linear_scan_packed, linear_scan_packed_vjp),
    _,
) = LINEAR.mirrors(_run, _back, partial(mirror, types=WITH_HALVES))


@mirror(LINEAR_STEP)
def linear_step(a, b, x):
    """One pass over the entries."""
    return a * x + b


@mirror(LINEAR_STEP)
def linear_step_vjp(dx_next, a, b, x):
    db = dx_next.astype(common(dx_next, a, b, x))
    return unbroadcast_each((x.conj() * db, db, a.conj() * db), (a, b, x))


BLOCK = 128
LANES = (1, 4, 16)  # threads side by side in a block; the others split time
RESIDENT = 2  # blocks for each multiprocessor where time is cut into pieces
SHORTEST = 4  # chunks of a piece, below which cutting costs more than it gains
HELD = 32  # registers of a thread for the decays and inputs of its steps
X0 = 2  # the place of x0 among the arguments in the mask
BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "complex128": 16}
# scan_sizes in linear_scan.cuh
SIZES = record("l", "n", "inner", "span", "step_a", mask=np.uint32, at_rest=np.int32)


def _widths(kind: str) -> tuple[int, ...]:
    """Columns of a thread: what 16 bytes hold, or one."""
    return tuple(dict.fromkeys((1, 16 // BYTES[kind])))


def _items(kind: str, vector: int) -> int:
    """Steps of a thread in a chunk, as many as fit in its registers; 8 at most."""
    words = max(BYTES[kind], 4) // 4
    return min(8, HELD // (2 * vector * words))


INSTANCES: tuple[Instance, ...] = tuple(
    (kind, vector, lanes, _items(kind, vector))
    for kind in (*FIELDS, *HALVES)
    for vector in _widths(kind)
    for lanes in LANES
)
_FORWARD = Kernel(
    "scan/linear_scan.cuh", "linear_scan", INSTANCES, BLOCK, registers=168, bound="memory"
)
_BACK = replace(_FORWARD, name="linear_scan_back")
_TOTALS = replace(
    _FORWARD, source="scan/linear_scan_pieces.cuh", name="linear_scan_totals", registers=128
)
_BACK_TOTALS = replace(_TOTALS, name="linear_scan_back_totals")


class ScanPlan(NamedTuple):
    """How a scan is split: the kernels' instance, their grid, and the sizes they get."""

    instance: Instance
    grid: tuple[int, int]
    size: Any

    @property
    def pieces(self) -> int:
        """Pieces of time."""
        return self.grid[1]

    def maps(self, rows: int, n: int, dtype: np.dtype, like: Array) -> tuple[Array, Array, Array]:
        """Memory for the map of each piece: decays, inputs (rows, pieces, n), and resets."""
        shape = (rows, self.pieces, n)
        made = (empty(shape, dtype, like) for _ in range(2))
        return *made, empty(shape[:2], np.uint8, like)

    def from_own_states(self, argument: int) -> ScanPlan:
        """The same with a state before each piece of each row, the argument of this number."""
        size = self.size.copy()
        size["mask"] |= in_every_row(argument)
        return self._replace(size=size)


@dataclass(frozen=True)
class Scan:
    """A scan's arguments, as the kernels take them; `x0` and `resets` may be None."""

    a: Array  # (…, l, n), or (…, 1, n) if constant in time
    b: Array  # (…, l, n): the inputs, or the cotangents of the states
    x0: Array | None
    resets: Array | None
    rows: Batch
    at_rest: bool

    @property
    def accumulated(self) -> np.dtype:
        """The type of the states inside: halves are computed in single precision."""
        return accumulated(self.b.dtype)


def arguments(
    a: Array, b: Array, x0: Array | None, resets: Array | None, at_rest: bool, *beside: Array | None
) -> Scan:
    """Bring the arguments to one type and one batch; without `x0` a scan starts from zeros.

    The type is that of all of them and of the arrays `beside` them.
    """
    kind = common(a, b, x0, *beside)
    rows = batch((a, b, x0, resets), (2, 2, 1, 1), (kind, kind, accumulated(kind), np.uint8))
    a, b, x0, resets = rows.arrays
    return Scan(a, b, x0, resets, rows, at_rest)


def scan(
    a: Array,
    b: Array,
    x0: Array | None = None,
    resets: Array | None = None,
    *,
    at_rest: bool = True,
) -> Array:
    """x_k = a_k x_{k-1} + b_k from x0 or from zeros; `at_rest`: a sequence begins at time 0."""
    s = arguments(a, b, x0, resets, at_rest)
    x = empty((s.rows.rows, *s.b.shape[-2:]), s.b.dtype, s.b)
    plan = _plan(s)
    starts = s.x0
    if plan.pieces > 1:
        starts, plan = _starts(s, plan), plan.from_own_states(X0)
    _FORWARD(plan.instance, plan.grid, s.a, s.b, starts, s.resets, x, plan.size)
    return s.rows.unfolded(x, s.b.shape[-2:])


def scan_back(
    dx: Array,
    a: Array,
    x: Array,
    x0: Array | None = None,
    resets: Array | None = None,
    *,
    dlast: Array | None = None,
    at_rest: bool = True,
) -> tuple[Array, Array, Array]:
    """g_k = dx_k + a_{k+1}* g_{k+1}, da_k = x_{k-1}* g_k and dx0 = a_0* g_0, from the states x.

    Returns (da, g, dx0) for every member of the batch; `dlast` is added to the last cotangent.
    """
    xp, core = namespace(dx), dx.shape[-2:]
    # the kernel finds the states by the row of the whole batch, which other arguments may widen
    dx, x = xp.broadcast_arrays(dx, x)
    s = arguments(a, dx, x0, resets, at_rest, x, dlast)
    n = core[-1]
    states = s.rows.every_row(x, 2, s.b.dtype)
    da, g = (empty((s.rows.rows, *core), s.b.dtype, s.b) for _ in range(2))
    ends = None if dlast is None else s.rows.every_row(dlast, 1, s.accumulated)
    dx0 = xp.zeros((s.rows.rows, n), dtype=s.accumulated)
    if ends is not None and not core[0] and not at_rest:  # the last state is the first one
        dx0 += ends
    plan = _plan(s)
    if plan.pieces > 1:
        ends = _ends(s, plan, ends)
    _BACK(
        plan.instance, plan.grid, s.b, ends, s.a, states, s.x0, s.resets, da, g, dx0, plan.size
    )  # fmt: skip
    return s.rows.unfolded(da, core), s.rows.unfolded(g, core), s.rows.unfolded(dx0, (n,))


def _plan(s: Scan) -> ScanPlan:
    """Split the columns among threads and blocks, and time among pieces if blocks are few."""
    l, n = s.b.shape[-2:]
    kind = s.b.dtype.name
    vector = next(v for v in reversed(_widths(kind)) if n % v == 0)
    groups = n // vector
    lanes = next((lanes for lanes in LANES if lanes >= groups), LANES[-1])
    items = _items(kind, vector)
    tiles = s.rows.rows * blocks(groups, lanes)
    chunk = BLOCK // lanes * items
    pieces = 1
    if 0 < 2 * tiles < target().multiprocessors:  # cutting reads the arrays twice
        wanted = blocks(RESIDENT * target().multiprocessors, tiles)
        pieces = max(1, min(wanted, l // (SHORTEST * chunk)))
    span = max(1, blocks(blocks(l, pieces), chunk) * chunk)
    pieces = max(1, blocks(l, span))
    steps = 0 if s.a.shape[-2] == 1 else n
    size = np.array(
        [(l, n, s.rows.inner, span, steps, s.rows.mask, s.at_rest)], SIZES
    )  # one record, passed by value
    return ScanPlan((kind, vector, lanes, items), (tiles * bool(l), pieces), size)


def before_pieces(maps: tuple[Array, ...], x0: Array | None, *, at_rest: bool) -> Array:
    """The state before each piece, (rows, pieces, n); `x0`: before all of them, None: zeros."""
    decays, inputs, begins = maps
    return _shifted(scan(decays, inputs, x0, begins, at_rest=at_rest), x0)


def after_pieces(maps: tuple[Array, ...], last: Array | None) -> Array:
    """The cotangent that comes in after each piece; `last`: after all of them, None: zeros."""
    flip = namespace(*maps).flip
    decays, inputs, begins = (flip(x, axis=1) for x in maps)
    found = scan(decays, inputs, last, begins, at_rest=False)
    return contiguous(flip(_shifted(found, last), axis=1))


def _shifted(x: Array, first: Array | None) -> Array:
    """`first`, or zeros, and all states but the last."""
    xp = namespace(x)
    start = xp.zeros_like(x[:, :1]) if first is None else first[:, None]
    return contiguous(xp.concat([start, x[:, :-1]], axis=1))


def _starts(s: Scan, plan: ScanPlan) -> Array:
    """The state before each piece, (rows, pieces, n)."""
    maps = plan.maps(s.rows.rows, s.b.shape[-1], s.accumulated, s.b)
    _TOTALS(plan.instance, plan.grid, s.a, s.b, s.resets, *maps, plan.size)
    x0 = None if s.x0 is None else s.rows.every_row(s.x0, 1, s.accumulated)
    return before_pieces(maps, x0, at_rest=s.at_rest)


def _ends(s: Scan, plan: ScanPlan, dlast: Array | None) -> Array:
    """The cotangent that comes in after each piece, (rows, pieces, n)."""
    maps = plan.maps(s.rows.rows, s.b.shape[-1], s.accumulated, s.b)
    _BACK_TOTALS(plan.instance, plan.grid, s.b, s.a, s.resets, *maps, plan.size)
    return after_pieces(maps, dlast)
