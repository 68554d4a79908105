"""The gauges of COLUMNS: the bounds of a call's results, from those of the columns of a state.

Operators behind adapters have tracked arguments, and the gradients by their parameters follow from
those by the arguments. The second gauge is made if a result exceeds the first one.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from refssm._declaration.adapted import Adapted
from refssm._declaration.arguments import several
from refssm._declaration.operator import Operator
from refssm._declaration.recurrence import Recurrence
from refssm.conformance.gauges.columns.dplr import LowRankColumns
from refssm.conformance.gauges.columns.steps import LONG, RECURRENCES, Columns, one_of, with_row
from refssm.conformance.gauges.gauge import (
    Cumulated,
    Gauge,
    Gauges,
    TrackedCall,
    as_input,
    wide,
)
from refssm.conformance.gauges.tracked import Tracked, tracing
from refssm.linear_attention.delta_dplr import DELTA_DPLR_RULE
from refssm.linear_attention.delta_dplr_chunked import DELTA_DPLR_BY_CHUNKS
from refssm.linear_attention.sweep import gates_keys

LOW_RANK = (DELTA_DPLR_RULE, DELTA_DPLR_BY_CHUNKS)
OF = {op.name: (recurrence, j) for recurrence in (*RECURRENCES, *LOW_RANK)
      for j, op in enumerate(recurrence.operators)}  # fmt: skip
# the operator by chunks of each form of a rule by steps
BY_CHUNKS = {
    op.name: chunked
    for rule in (*RECURRENCES, *LOW_RANK) if rule.same_as
    for op, chunked in zip(rule.same_as.operators, rule.operators, strict=False)
}  # fmt: skip


def columns_of(recurrence: Recurrence, floor: float, unit: float) -> Columns:
    """The bounds of a recurrence whose arguments are named as here."""
    kind = LowRankColumns if recurrence in LOW_RANK else Columns
    keyed, chunked = gates_keys(recurrence.operators[0]), recurrence.same_as is not None
    return kind([*recurrence.inputs], keyed, floor, unit, chunked)


def in_chunks(call: TrackedCall) -> TrackedCall | None:
    """The same call of the operator by chunks, of the longest that kernels have; None without."""
    op = BY_CHUNKS.get(call.op.name)
    return replace(call, op=op, statics={**call.statics, "chunk": LONG}) if op else None


def beside(
    call: TrackedCall, gauges: Gauges, vjp: Callable | None, chunked: Callable[[], Gauges] | None
) -> Gauges:
    """The gauges with the second one, of programs by sums of gates that exchange rows.

    For a rule by steps it is at least K0 of the operator by chunks (`chunked`): sums of a chunk
    keep the roundings of what a later step takes away, which the steps do not.
    """

    @cache
    def bounds(cumulated: str) -> list[np.ndarray]:
        found = of_columns_gradients(call, vjp, cumulated) if vjp else of_columns(call, cumulated)
        # that of K0 is larger than what was measured, and so is this one, in the place of K1
        own = [_in_place(own.k0, g) for own, g in zip(gauges, found, strict=True)]
        if chunked is None:
            return own
        return [np.maximum(k, g.k0) for k, g in zip(own, chunked(), strict=True)]

    def second(j: int) -> Cumulated:
        return Cumulated(lambda: bounds("whole")[j], lambda: bounds("terms")[j])

    return tuple(replace(g, cumulated=second(j)) for j, g in enumerate(gauges))


def _in_place(k0, g: Gauge):
    """The bound K1 of a gauge, as much larger as `k0` is beside its own K0; `k0` without K1.

    K1 is not divided by K0, which may be the smallest number of the type.
    """
    known = np.isfinite(g.k1) & (g.k0 > 0)
    beside = np.divide(k0, g.k0, where=known, out=np.ones_like(g.k0))
    return np.where(known, beside * g.k1, k0)


def of_columns(call: TrackedCall, cumulated: str = "") -> Gauges:
    """One gauge for each output."""
    values = call.values or several(_run(call.op.definition or call.op.reference, call))
    names = [f"{name}->" for name in call.op.outputs]
    with tracing(call.unit, call.floor):
        natural = _levels(call.op, call.arrays)[-1]
    bounds = _bounds(call, [], natural, names, lambda pair: pair.forward, cumulated)
    for adapted in reversed([*_chain(call.op)][:-1]):
        tracked = (Tracked(k[0], np.moveaxis(k, 0, -1)) for k in bounds)
        bounds = [np.moveaxis(y.errors, -1, 0) for y in several(adapted.returned(tuple(tracked)))]
    return tuple(map(partial(_gauge, peak=_peak(call, values), floor=call.floor), values, bounds))


def of_columns_gradients(call: TrackedCall, vjp: Callable, cumulated: str = "") -> Gauges:
    """One gauge for each gradient, through the adapters of the operator."""
    values = call.values or [g for g in _run(vjp, call) if g is not None]
    count, op = len(call.op.inputs), call.op
    cotangents = wide(call.arrays[:-count])
    with tracing(call.unit, call.floor, partial=True):
        levels = _levels(op, call.arrays[-count:])
        chain = [*_chain(op)]
        natural = levels[-1]
        for adapted in chain[:-1]:
            cotangents = adapted.cotangents(cotangents)
        names = [name for name in op.inputs if name not in op.discrete]
        bounds = _bounds(call, cotangents, natural, names, lambda pair: pair.vjp, cumulated)
        if len(levels) > 1:
            plain = [x.value if isinstance(x, Tracked) else x for x in natural]
            made = chain[-1].bare_vjp(*cotangents, *plain, **call.statics)
            found = iter(bounds)
            gradients = [g if g is None else Tracked(g, np.moveaxis(next(found), 0, -1))
                         for g in made]  # fmt: skip
            inwards = zip(chain[:-1], levels[:-1], levels[1:], strict=True)
            for adapted, parameters, inner in reversed([*inwards]):
                gradients = adapted.back(gradients, parameters, inner)
            bounds = [np.moveaxis(g.errors, -1, 0) for g in gradients if g is not None]
    return tuple(map(partial(_gauge, peak=_peak(call, values), floor=call.floor), values, bounds))


def _chain(op: Operator | None) -> Iterator[Any]:
    """The operator, and what it is a function of other parameters of, down to that of its own."""
    while op is not None:
        yield op
        op = op.base if isinstance(op, Adapted) else None


def _levels(op: Operator, arrays) -> list[list]:
    """The arguments of each operator of the chain as tracked arrays; marks stay as they are."""
    levels = [[as_input(a) for a in arrays]]
    for adapted in [*_chain(op)][:-1]:
        levels.append(adapted.given(levels[-1]))
    return levels


def _run(program, call: TrackedCall):
    with np.errstate(all="ignore"):
        return program(*wide(call.arrays), **call.statics)


def _bounds(call: TrackedCall, cotangents, natural, names, program_of, cumulated) -> list:
    """The bounds of the results with these names; that of an output ends in an arrow."""
    recurrence, number = OF[call.op.name]
    letter = recurrence.states[0].letter
    states = {letter, f"{letter}0", *(f"{y}->" for y in call.op.outputs[1:])}
    given = [*(f"{y}->" for y in call.op.outputs), *call.op.inputs]
    columns = replace(columns_of(recurrence, call.floor, call.unit), cumulated=cumulated)
    pairs = list(recurrence.mirrors(columns.run, columns.back, lambda op: lambda f: f))
    arrays = [*cotangents, *natural]
    arrays = [
        _tracked_state(a, cumulated) if name in states else _of_all(a) if a.dtype.kind == "i" else a
        for name, a in zip(given[len(given) - len(arrays) :], arrays, strict=True)
    ]
    with np.errstate(all="ignore"):
        made = several(program_of(pairs[number])(*arrays, **call.statics))
    made = [bounds for bounds in made if bounds is not None]
    return [
        _of_state(bounds) if name in states else bounds
        for name, bounds in zip(names, made, strict=True)
    ]


def _peak(call: TrackedCall, values) -> float:
    return max(_largest(a) for a in (*call.arrays, *values))


def _tracked_state(S, cumulated: str):
    """A state with its columns' errors: none for K0, for K1 a rounding of each entry."""
    S = S.value if isinstance(S, Tracked) else S
    one = 0 * one_of(S[None]) if cumulated else one_of(S[None])
    return with_row(S, one * np.sqrt((S**2).sum(-2)))


def _of_all(numbers):
    """Ends or places, which a whole batch shares, without its axes."""
    return numbers.reshape(-1, numbers.shape[-1])[0] if numbers.size else numbers


def _of_state(bounds):
    """The bounds of each entry of a state from those of its columns."""
    shape = (*bounds.shape[:-2], bounds.shape[-2] - 1, bounds.shape[-1])
    return np.broadcast_to(bounds[..., -1:, :], shape)


def _gauge(y, bounds, peak: float, floor: float) -> Gauge:
    """Bounds at least |y| and the floor; an undefined one (0·∞) is infinite."""
    least = np.maximum(np.abs(y), floor)
    k0, k1 = (np.maximum(np.where(np.isnan(k), np.inf, k), least) for k in bounds)
    return Gauge(y, k0, k1, peak)


def _largest(a) -> float:
    return float(np.abs(a).max(initial=0, where=np.isfinite(a))) if a.dtype.kind == "f" else 0.0
