"""A recurrence over pieces of a sequence: packed sequences with states, and states at places.

Both follow from the functions `run` and `back` of a role (`refssm._declaration.recurrence`): one
call for each piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from refssm._numerics.broadcasting import at, unbroadcast, with_batch

BACKWARDS = slice(None, None, -1)


@dataclass(frozen=True)
class ByPieces:
    """`run` and `back` of a recurrence, and where time is in its arrays.

    States come as the list of their parts; `run` and `back` take one part alone, or a tuple.
    """

    name: str  # of the operator, for messages
    run: Callable[..., Any]
    back: Callable[..., Any]
    passing: Callable[..., Any]  # as `run`, where only states count
    axes: Sequence[int]  # the axis of time of each argument, from the end; 0 if it has none
    out: int  # the axis of time of the output
    ranks: Sequence[int]  # core axes of each part of a state
    only_states: bool  # True if the outputs are the states

    def sequences(self, arguments, states, ends, **statics):
        """Each sequence from its own state: the outputs, and the last state of each."""
        found = [
            self.run(self._cut(arguments, w), self._state(states, i), None, **statics)
            for i, w in enumerate(self._windows(arguments, ends))
        ]
        if not found:  # no step either
            y, *_ = self.run(arguments, None, None, **statics)
            batch, pairs = y.shape[: self.out], zip(states, self.ranks, strict=True)
            shapes = [(*batch, *x.shape[x.ndim - rank - 1 :]) for x, rank in pairs]
            pairs = zip(states, shapes, strict=True)
            return y, *(np.broadcast_to(x, shape).copy() for x, shape in pairs)
        outputs, *lasts = zip(*found, strict=True)
        y = self._wide(np.concatenate(outputs, axis=self.out), -self.out, ends)
        if self.only_states:
            return y, None
        return y, *self._stacked(lasts, ends)

    def sequences_back(self, cotangents, arguments, states, ends, **statics):
        """Gradients for the arguments and for the states."""
        windows = self._windows(arguments, ends)
        if windows and ends.ndim > 1:
            start = self._state(states, 0)
            cotangents = self._narrow(cotangents, arguments, start, **statics)
        found, (dy, *dstates) = [], _widened(cotangents, (*arguments, *states))
        for i, w in enumerate(windows):
            given = *self._cut((dy,), w, [self.out]), *self._parts(dstates, i)
            piece, start = self._cut(arguments, w), self._state(states, i)
            found.append(self.back(given, piece, start, None, **statics))
        if not found:
            return *(np.zeros_like(x) for x in arguments), *(np.zeros_like(x) for x in states)
        starts = list(zip(*found, strict=True))[len(arguments) :]
        return *self._gathered(found), *self._stacked(starts)

    def at_places(self, arguments, start, places, **statics):
        """The outputs from one state, and the state before each place."""
        y, states = self._chained(self.run, arguments, self._together(start), places, **statics)
        held = self._stacked(zip(*states[1:], strict=True))  # one more than places: the last state
        pairs = zip(held, self.ranks, strict=True)
        held = [at(x, slice(-1), -rank - 1) for x, rank in pairs]
        pairs = zip(held, self.ranks, strict=True)
        held = [self._wide(x, rank + 1, places) for x, rank in pairs]
        return self._wide(np.concatenate(y, axis=self.out), -self.out, places), *held

    def at_places_back(self, cotangents, arguments, start, places, **statics):
        """Gradients for the arguments and for the state, from the last piece to the first."""
        start = self._together(start)
        if places.ndim > 1:
            cotangents = self._narrow(cotangents, arguments, start, **statics)
        dy, *dstates = _widened(cotangents, (*arguments, *self._apart(start)))
        _, states = self._chained(self.passing, arguments, start, places, **statics)
        windows, found = self._between(arguments, places), []
        carried = [np.zeros_like(x) for x in states[-1]]
        for i in range(len(windows) - 1, -1, -1):
            given = *self._cut((dy,), windows[i], [self.out]), *carried
            piece, before = self._cut(arguments, windows[i]), self._together(states[i])
            gradients = self.back(given, piece, before, None, **statics)
            carried = gradients[len(arguments) :]
            found.insert(0, gradients)
            if i:
                pairs = zip(carried, self._parts(dstates, i - 1), strict=True)
                carried = [x + at_place for x, at_place in pairs]
        return *self._gathered(found), *carried

    def _chained(self, run, arguments, start, places, **statics):
        """The outputs of each piece between places, and the parts of the states around each."""
        y, states = [], [self._apart(start)]
        for w in self._between(arguments, places):
            before = self._together(states[-1])
            piece, *state = run(self._cut(arguments, w), before, None, **statics)
            y.append(piece)
            states.append(tuple(state))
        return y, states

    def backwards(self, arguments, **statics):
        """The outputs of the recurrence from the last step to the first."""
        y, *_ = self.run(self._turned(arguments), None, None, **statics)
        return at(y, BACKWARDS, self.out).copy()

    def backwards_back(self, cotangents, arguments, **statics):
        """Its gradients for the arguments."""
        turned = self._turned(cotangents, [self.out]), self._turned(arguments)
        gradients = self.back(*turned, None, None, **statics)
        return self._turned(gradients[: len(self.axes)])

    def _turned(self, arrays, axes=None):
        """The arrays in reverse time."""
        pairs = zip(arrays, axes or self.axes, strict=True)
        return tuple(at(x, BACKWARDS, axis).copy() if axis else x for x, axis in pairs)

    def _length(self, arguments) -> int:
        return next(x.shape[axis] for x, axis in zip(arguments, self.axes, strict=True) if axis)

    def _windows(self, arguments, ends) -> list[slice]:
        """The steps of each sequence; ValueError if `ends` do not rise to the length."""
        l = self._length(arguments)
        ends = self._shared("ends", ends, l)
        if ends != sorted(ends) or [0, *ends][-1] != l or min(ends, default=0) < 0:
            wanted = f"whole numbers from 0 that rise to l={l}"
            raise ValueError(f"{self.name}: `ends` must be {wanted}, got {_few(ends)}")
        return [slice(*pair) for pair in pairwise([0, *ends])]

    def _between(self, arguments, places) -> list[slice]:
        """The steps between places; ValueError if they do not rise within the length."""
        l = self._length(arguments)
        places = self._shared("places", places, l)
        if places != sorted(places) or not all(0 <= place <= l for place in places):
            wanted = f"whole numbers that rise, from 0 to at most l={l}"
            raise ValueError(f"{self.name}: `places` must be {wanted}, got {_few(places)}")
        return [slice(*pair) for pair in pairwise([0, *places, l])]

    def _shared(self, argument: str, numbers, l: int) -> list[int]:
        """The numbers, which all members of a batch share; else a ValueError."""
        members = numbers.reshape(math.prod(numbers.shape[:-1]), numbers.shape[-1])
        if not (members == members[:1]).all():
            raise ValueError(f"{self.name}: `{argument}` must be the same for the whole batch")
        return members[0].tolist() if len(members) else [l] * numbers.shape[-1]

    @staticmethod
    def _wide(array, core: int, numbers):
        """The array with the leading axes of ends or places, if they have any."""
        if numbers.ndim == 1:
            return array
        batch = np.broadcast_shapes(array.shape[: array.ndim - core], numbers.shape[:-1])
        return with_batch(array, core, batch)

    def _narrow(self, cotangents, arguments, state, **statics):
        """Cotangents summed over the leading axes that only ends or places have."""
        y, *_ = self.run(self._cut(arguments, slice(0)), state, None, **statics)
        cores = zip(cotangents, (-self.out, *(rank + 1 for rank in self.ranks)), strict=False)
        shapes = [(*y.shape[: self.out], *c.shape[c.ndim - core :]) for c, core in cores]
        pairs = zip(cotangents, shapes, strict=True)
        return tuple(unbroadcast(c, np.zeros_like(c, shape=shape)) for c, shape in pairs)

    def _cut(self, arrays, window: slice, axes=None):
        """The steps of a window, of the arrays that have an axis of time."""
        pairs = zip(arrays, axes or self.axes, strict=True)
        return tuple(at(x, window, axis) if axis else x for x, axis in pairs)

    def _together(self, parts):
        """The parts of a state as `run` and `back` take them."""
        return tuple(parts) if len(self.ranks) > 1 else parts[0]

    def _apart(self, state) -> tuple:
        """The parts of a state, as a tuple."""
        return tuple(state) if len(self.ranks) > 1 else (state,)

    def _parts(self, states, i: int) -> list:
        """The parts of state number i; [] if there are no states."""
        return [at(x, i, -rank - 1) for x, rank in zip(states, self.ranks, strict=False)]

    def _state(self, states, i: int):
        """State number i."""
        return self._together(self._parts(states, i))

    def _stacked(self, states, numbers=None) -> list:
        """Each part of the states, with an axis for their numbers before the core axes, and with
        the leading axes of ends, if they are given."""
        pairs = zip(states, self.ranks, strict=True)
        stacked = [np.stack(part, axis=-rank - 1) for part, rank in pairs]
        if numbers is None:
            return stacked
        pairs = zip(stacked, self.ranks, strict=True)
        return [self._wide(x, rank + 1, numbers) for x, rank in pairs]

    def _gathered(self, found):
        """Gradients of the pieces for the arguments: joined along time, or summed."""
        parts = list(zip(*found, strict=True))[: len(self.axes)]
        return [
            np.concatenate(part, axis=axis) if axis else sum(part[1:], part[0])
            for part, axis in zip(parts, self.axes, strict=True)
        ]


def _widened(cotangents, arguments):
    """Cotangents in the arguments' precision: a gradient may be a sum of them alone."""
    return tuple(c.astype(np.result_type(c, *arguments), copy=False) for c in cotangents)


def _few(numbers: list[int]) -> str:
    """The numbers, at most eight."""
    return str(numbers) if len(numbers) <= 8 else f"{str(numbers[:8])[:-1]}, …]"
