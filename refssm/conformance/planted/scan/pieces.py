"""Wrong programs of the forms by pieces, from those of the form from a state, or from rest.

Packed sequences with a state each are one call for each sequence; a state at a place is the last
one of the steps before it; reverse time is that of turned arrays. Rows of an argument of the step
before are here, too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import at, unbroadcast, with_batch
from refssm.catalog import states_in
from refssm.conformance.calling.finding import operator_named

BACKWARDS = slice(None, None, -1)
Adapt = Callable[[Operator], Callable]


def in_any_form(adapt: Adapt) -> Adapt:
    """`adapt`, which adapts programs to an operator, for operators by pieces, too."""

    def to(op: Operator) -> Callable:
        for ending, (base, by_pieces) in FORMS.items():
            if op.name.endswith(ending):
                of = operator_named(op.name.removesuffix(ending) + base)
                adapted = adapt(of)
                return lambda wrong: by_pieces(of, adapted(wrong))
        return adapt(op)

    return to


def _of_sequences(of: Operator, program):
    """Each sequence from its own state."""
    ranks, out = _ranks(of), _time(of.output_dims[0])

    def pieces(right, *args, **statics):
        given, states, ends = args[: -len(ranks) - 1], args[-len(ranks) - 1 : -1], args[-1]
        if _empty(of, given, ends):
            return right(*args, **statics)
        y, last = [], []
        for i, (first, end) in enumerate(pairwise([0, *_shared(ends)])):
            state = _one_of(states, i, ranks)
            if end > first:
                cut = _cut(of, given, slice(first, end))
                part, *state = program(right, *cut, *state, **statics)
                y.append(part)
            last.append(state)
        return _joined(np.concatenate(y, axis=out), last, ends, ranks, out)

    return pieces


def _to_places(of: Operator, program):
    """The outputs of the whole sequence, and the last state of the steps before each place."""
    ranks, out = _ranks(of), _time(of.output_dims[0])

    def pieces(right, *args, **statics):
        given, state, places = args[: -len(ranks) - 1], args[-len(ranks) - 1 : -1], args[-1]
        if _empty(of, given, places):
            return right(*args, **statics)
        y, *_ = program(right, *given, *state, **statics)
        held = [
            program(right, *_cut(of, given, slice(place)), *state, **statics)[1:]
            if place
            else state
            for place in _shared(places)
        ]
        return _joined(y, held, places, ranks, out)

    return pieces


def _backwards(of: Operator, program):
    """From the last step to the first."""

    def pieces(right, *args, **statics):
        y = program(right, *(x.copy() for x in _cut(of, args, BACKWARDS)), **statics)
        return at(y, BACKWARDS, _time(of.output_dims[0])).copy()

    return pieces


FORMS = {
    "_packed_stateful": ("_stateful", _of_sequences),
    "_states": ("_stateful", _to_places),
    "_reversed": ("", _backwards),
}


def in_sequences(adapt: Adapt) -> Adapt:
    """`adapt` of VJPs, for packed sequences with a state each, too."""

    def to(op: Operator) -> Callable:
        ending = "_packed_stateful"
        if not op.name.endswith(ending):
            return adapt(op)
        of = operator_named(f"{op.name.removesuffix(ending)}_stateful")
        adapted = adapt(of)
        return lambda wrong: _back_of_sequences(of, adapted(wrong))

    return to


def _back_of_sequences(of: Operator, vjp):
    """The gradients of each sequence for its own steps and state; shared arguments get the sum."""
    ranks, out = _ranks(of), _time(of.output_dims[0])
    count = len(ranks)

    def pieces(right, dy, *args, **statics):
        dlast, given = args[:count], args[count : -count - 1]
        states, ends = args[-count - 1 : -1], args[-1]
        if _empty(of, given, ends):
            return right(dy, *args, **statics)
        found, starts = [], []
        for i, (first, end) in enumerate(pairwise([0, *_shared(ends)])):
            state, dstate = (_one_of(parts, i, ranks) for parts in (states, dlast))
            if end > first:
                window = slice(first, end)
                cut = at(dy, window, out), *dstate, *_cut(of, given, window), *state
                gradients = vjp(right, *cut, **statics)
                dstate = gradients[len(given) :]
                found.append(gradients[: len(given)])
            starts.append([*map(unbroadcast, dstate, state)])
        each = zip(zip(*found, strict=True), of.input_dims, strict=False)
        joined = [np.concatenate(parts, _time(dims)) if "l" in dims else sum(parts[1:], parts[0])
                  for parts, dims in each]  # fmt: skip
        return *joined, *_stacked(starts, ranks), None

    return pieces


def _ranks(of: Operator) -> list[int]:
    """The core axes of each part of the state."""
    return [len(dims) for dims in of.input_dims[-states_in(of) :]]


def _one_of(states, i: int, ranks) -> list:
    """The parts of state number i."""
    return [at(x, i, -rank - 1) for x, rank in zip(states, ranks, strict=True)]


def _stacked(states, ranks) -> list:
    """Each part of the states, with an axis for their numbers."""
    pairs = zip(zip(*states, strict=True), ranks, strict=True)
    return [np.stack(part, axis=-rank - 1) for part, rank in pairs]


def _time(dims) -> int:
    """The axis of time, from the end."""
    return dims.index("l") - len(dims)


def _empty(of: Operator, arguments, numbers) -> bool:
    """True if there is no step, or no sequence or place."""
    pairs = zip(arguments, of.input_dims, strict=False)
    l = next(x.shape[_time(dims)] for x, dims in pairs if "l" in dims)
    return not l or not numbers.size


def _cut(of: Operator, arguments, window: slice) -> list:
    """The steps of a window, of the arguments that have an axis of time."""
    pairs = zip(arguments, of.input_dims, strict=False)
    return [at(x, window, _time(dims)) if "l" in dims else x for x, dims in pairs]


def _shared(numbers) -> list[int]:
    """Ends or places, which all members of a batch share."""
    return numbers.reshape(-1, numbers.shape[-1])[0].tolist()


def _joined(y, states, numbers, ranks, out: int):
    """Outputs and states with all leading axes, those of ends or places, too."""
    batch = np.broadcast_shapes(y.shape[:out], numbers.shape[:-1])
    states = [[with_batch(x, rank, batch) for x, rank in zip(state, ranks, strict=True)]
              for state in states]  # fmt: skip
    return with_batch(y, -out, batch), *_stacked(states, ranks)


def _held(x, axis: int):
    """x one step earlier, its first row twice."""
    return np.concatenate([at(x, slice(1), axis), at(x, slice(-1), axis)], axis) if x.size else x


def _from_zero(x, axis: int):
    """x one step earlier, after zeros."""
    return np.concatenate([0 * at(x, slice(1), axis), at(x, slice(-1), axis)], axis)


def _wrapped(x, axis: int):
    """x one step earlier, after its last row: what index −1 gives in Python."""
    return np.roll(x, 1, axis)


def late(operators, name: str, what: str, wrong: Callable[[Callable], Callable]) -> list:
    """A bug by wrong(earlier), for each of the rows that programs read before the first step."""
    begins = {"": _from_zero, "_held": _held, "_wrapped": _wrapped}
    return [(operators, f"{name}{word}", what, wrong(earlier)) for word, earlier in begins.items()]
