"""A recurrence from its step alone, one step after the other: `run` and `back` of a role.

It is for recurrences without faster functions of their own (`refssm._declaration.recurrence`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from refssm._numerics.broadcasting import at, unbroadcast_each, with_batch

Dims = tuple[str, ...]


@dataclass(frozen=True)
class Steps:
    """One step and its VJP, and the core dimensions of arguments, output and state; l is time.

    A state has one part or several: inside, it is a tuple of arrays.
    """

    step: Callable[..., Any]
    step_vjp: Callable[..., Any]
    dims: Sequence[Dims]
    out: Dims
    state: Sequence[Dims]  # of each part
    only_states: bool  # True if the output is the state, which the step returns once

    def run(self, arguments, state, resets, **statics):
        """The outputs, and the last state if there is a first one."""
        y, _, after = self.states(arguments, state, resets, **statics)
        batch = after[0].shape[: after[0].ndim - len(self.state[0])]
        if not y:
            sizes = self._sizes(arguments)
            shape = (*batch, *(sizes[d] for d in self.out))
            y = np.zeros_like(after[0], shape=shape, dtype=np.result_type(*after, *arguments))
        else:
            y = np.stack(y, axis=self._axis(self.out))
        y = with_batch(y, len(self.out), batch)
        return (y,) if state is None or self.only_states else (y, *after)

    def back(self, cotangents, arguments, state, resets, **statics):
        """Gradients for the arguments and the state, from the last step to the first."""
        _, before, after = self.states(arguments, state, resets, **statics)
        taken = self._taken(statics)
        dy, *carried = cotangents
        carried, count = carried or [np.zeros_like(part) for part in after], len(self.dims)
        found: list[tuple] = []
        for k in range(len(before) - 1, -1, -1):
            dy_k = at(dy, k, self._axis(self.out))
            given = (dy_k + carried[0],) if self.only_states else (dy_k, *carried)
            gradients = self.step_vjp(*given, *self._at(arguments, k), *before[k], **taken)
            carried = self._kept(gradients[count:], resets, k)
            found.insert(0, tuple(gradients[:count]))
        start = after if state is None else self._parts(state)
        return *self._gathered(found, arguments), *unbroadcast_each(carried, start)

    def _parts(self, state) -> tuple:
        """The parts of a state, which is the only one or a tuple."""
        return tuple(state) if len(self.state) > 1 else (state,)

    def _taken(self, statics: Mapping) -> dict:
        """The keywords that the step has; others, as `chunk`, change nothing."""
        known = inspect.signature(self.step).parameters
        return {name: value for name, value in statics.items() if name in known}

    def states(self, arguments, state, resets, **statics):
        """The outputs, the state before each step with all leading axes, and the last state."""
        parts = self._at_rest(arguments, resets) if state is None else self._parts(state)
        batch = self._batch(arguments, parts, resets)
        pairs = zip(parts, self.state, strict=True)
        parts, y, before = tuple(with_batch(x, len(dims), batch) for x, dims in pairs), [], []
        taken = self._taken(statics)
        for k in range(self._sizes(arguments)["l"]):
            before.append(self._kept(parts, resets, k))
            made = self.step(*self._at(arguments, k), *before[-1], **taken)
            y_k, *parts = (made, made) if self.only_states else made
            y.append(y_k)
        return y, before, tuple(parts)

    def _at_rest(self, arguments, resets) -> tuple:
        """Zeros for each part of the state."""
        batch, sizes = self._batch(arguments, (), resets), self._sizes(arguments)
        kind = np.result_type(*arguments)
        shapes = [(*batch, *(sizes[d] for d in dims)) for dims in self.state]
        return tuple(np.zeros_like(arguments[0], shape=shape, dtype=kind) for shape in shapes)

    def _kept(self, parts, resets, k: int) -> tuple:
        """The state, or exactly 0 where a sequence begins; selected, so NaN does not pass."""
        if resets is None or not resets[..., k].any():
            return tuple(parts)
        now = resets[..., k]
        begins = [now.reshape((*now.shape, *[1] * len(dims))) for dims in self.state]
        return tuple(np.where(b, 0, x) for b, x in zip(begins, parts, strict=True))

    def _at(self, arguments, k: int) -> list:
        """The arguments of step k."""
        pairs = zip(arguments, self.dims, strict=True)
        return [at(x, k, self._axis(dims)) if "l" in dims else x for x, dims in pairs]

    def _gathered(self, found, arguments):
        """The gradients of all steps: joined along time, or summed."""
        if not found:
            return [np.zeros_like(x) for x in arguments]
        parts = zip(zip(*found, strict=True), self.dims, strict=True)
        return [
            np.stack(part, axis=self._axis(dims)) if "l" in dims else sum(part[1:], part[0])
            for part, dims in parts
        ]

    def _batch(self, arguments, parts, resets):
        """The leading axes of all."""
        pairs = [*zip(arguments, self.dims, strict=True), *zip(parts, self.state, strict=False)]
        shapes = [x.shape[: x.ndim - len(dims)] for x, dims in pairs]
        if resets is not None:
            shapes.append(resets.shape[:-1])
        return np.broadcast_shapes(*shapes)

    def _sizes(self, arguments) -> dict[str, int]:
        return {
            d: n
            for x, dims in zip(arguments, self.dims, strict=True)
            for d, n in zip(dims, x.shape[x.ndim - len(dims) :], strict=True)
        }

    @staticmethod
    def _axis(dims: Dims) -> int:
        """The axis of time, from the end."""
        return dims.index("l") - len(dims)
