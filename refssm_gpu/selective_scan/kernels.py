"""Selective scans and their adjoints on the card: selective_scan.cuh and selective_adjoint.cuh.

Where blocks are few, time is cut into pieces: a first launch gives each piece's map, the scan of
`recurrence` composes the maps, and the last launch starts every piece from its own state.
"""

from __future__ import annotations

from typing import NamedTuple

from refssm_gpu._launching.arrays import (
    HALVES,
    Array,
    blocks,
    empty,
    namespace,
    real_type,
    unbroadcast_and_round,
)
from refssm_gpu._launching.kernel import FIELDS, Kernel, instances
from refssm_gpu._parts.recurrence import Plan, after_pieces, before_pieces
from refssm_gpu.selective_scan.arguments import STARTS, TILE, Given, Selective, arguments

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
_STATES = Kernel(
    "selective_scan/selective_scan.cuh",
    "selective_states",
    _INSTANCES,
    BLOCK,
    registers=168,
    bound="special functions",
)
_TOTALS = Kernel(
    "selective_scan/selective_pieces.cuh",
    "selective_totals",
    _INSTANCES,
    BLOCK,
    registers=168,
    bound="special functions",
)
_ENDS = Kernel(
    "selective_scan/selective_pieces.cuh",
    "selective_back_totals",
    _INSTANCES,
    BLOCK,
    registers=136,
    bound="special functions",
)
_BACK = Kernel(
    "selective_scan/selective_adjoint.cuh",
    "selective_back",
    _INSTANCES,
    BLOCK,
    registers=255,
    bound="flops",
)
_GATED_BACK = Kernel(
    "selective_scan/selective_adjoint.cuh",
    "mamba_back",
    _INSTANCES,
    BLOCK,
    registers=255,
    bound="flops",
)


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


def scan(given: Given, *, at_rest: bool) -> tuple[Array, Array]:
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


def gradients(given: Given, dlast: Array | None = None, *, at_rest: bool) -> tuple[Array, ...]:
    """The gradients of all arguments but resets, shaped like them and in their types."""
    primals = given._replace(resets=None, dy=None)
    made = pulled_back(given, dlast, at_rest=at_rest)
    pairs = [(g, x) for g, x in zip(made, primals, strict=False) if x is not None]
    return unbroadcast_and_round(*zip(*pairs, strict=True))


def pulled_back(given: Given, dlast: Array | None, *, at_rest: bool) -> Gradients:
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


def _made(s: Selective, plan: Plan, ends: Array | None) -> Gradients:
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


def _carry(s: Selective, plan: Plan) -> Array | None:
    """Where states wait between chunks, if a thread cannot keep them all."""
    if s.states <= TILE:
        return None
    return empty((s.rows.rows, plan.pieces, s.states), s.inside, s.given.u)


def _starts(s: Selective, plan: Plan, x0: Array | None) -> tuple[Array | None, Plan]:
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


def _ends(s: Selective, plan: Plan, dlast: Array | None) -> Array | None:
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


def _states(s: Selective, plan: Plan, x0: Array | None) -> Array:
    """The states before each chunk, (rows, chunks, n)."""
    a = s.given
    starts, plan = _starts(s, plan, x0)
    before = empty((s.rows.rows, blocks(s.steps, s.chunk), s.states), s.inside, a.u)
    _STATES(
        plan.instance, plan.grid, a.u, a.dt, a.A, a.B, a.dt_bias, starts, a.resets, before,
        _carry(s, plan), plan.size,
    )  # fmt: skip
    return before
