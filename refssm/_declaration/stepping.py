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
    """One step and its VJP, and the core dimensions of arguments, output and state; l is time."""

    step: Callable[..., Any]
    step_vjp: Callable[..., Any]
    dims: Sequence[Dims]
    out: Dims
    state: Dims
    only_states: bool  # True if the output is the state, which the step returns once

    def run(self, arguments, state, resets, **statics):
        """The outputs, and the last state if there is a first one."""
        y, _, after = self.states(arguments, state, resets, **statics)
        batch = after.shape[: after.ndim - len(self.state)]
        if not y:
            sizes = self._sizes(arguments)
            shape = (*batch, *(sizes[d] for d in self.out))
            y = np.zeros_like(after, shape=shape, dtype=np.result_type(after, *arguments))
        else:
            y = np.stack(y, axis=self._axis(self.out))
        y = with_batch(y, len(self.out), batch)
        return (y,) if state is None or self.only_states else (y, after)

    def back(self, cotangents, arguments, state, resets, **statics):
        """Gradients for the arguments and the state, from the last step to the first."""
        _, before, after = self.states(arguments, state, resets, **statics)
        taken = self._taken(statics)
        dy, carried = cotangents[0], (*cotangents[1:], np.zeros_like(after))[0]
        found: list[tuple] = []
        for k in range(len(before) - 1, -1, -1):
            dy_k = at(dy, k, self._axis(self.out))
            given = (dy_k + carried,) if self.only_states else (dy_k, carried)
            *gradients, carried = self.step_vjp(*given, *self._at(arguments, k), before[k], **taken)
            carried = self._kept(carried, resets, k)
            found.insert(0, tuple(gradients))
        start = after if state is None else state
        return *self._gathered(found, arguments), unbroadcast_each((carried,), (start,))[0]

    def _taken(self, statics: Mapping) -> dict:
        """The keywords that the step has; others, as `chunk`, change nothing."""
        known = inspect.signature(self.step).parameters
        return {name: value for name, value in statics.items() if name in known}

    def states(self, arguments, state, resets, **statics):
        """The outputs, the state before each step with all leading axes, and the last state."""
        batch = self._batch(arguments, state, resets)
        if state is None:
            shape = (*batch, *(self._sizes(arguments)[d] for d in self.state))
            state = np.zeros_like(arguments[0], shape=shape, dtype=np.result_type(*arguments))
        state, y, before = with_batch(state, len(self.state), batch), [], []
        taken = self._taken(statics)
        for k in range(self._sizes(arguments)["l"]):
            before.append(self._kept(state, resets, k))
            state = self.step(*self._at(arguments, k), before[-1], **taken)
            y_k, state = (state, state) if self.only_states else state
            y.append(y_k)
        return y, before, state

    def _kept(self, state, resets, k: int):
        """The state, or exactly 0 where a sequence begins; selected, so NaN does not pass."""
        if resets is None or not resets[..., k].any():
            return state
        begins = resets[..., k].reshape(*resets.shape[:-1], *[1] * len(self.state))
        return np.where(begins, 0, state)

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

    def _batch(self, arguments, state, resets):
        """The leading axes of all."""
        shapes = [x.shape[: x.ndim - len(d)] for x, d in zip(arguments, self.dims, strict=True)]
        if state is not None:
            shapes.append(state.shape[: state.ndim - len(self.state)])
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
