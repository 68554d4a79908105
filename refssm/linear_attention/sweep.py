"""Runs of the recurrences of linear attention, forward and back, from one step and its VJP.

The reverse pass needs the states before each step. It keeps those before blocks of √l steps and
computes the states of one block again, from the last block to the first: O(n p √l) numbers for a
head in place of O(n p l) [chen2016training].
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from refssm._numerics.broadcasting import unbroadcast, with_batch
from refssm.scan.blocks import no_resets, windows


@dataclass(frozen=True)
class Sweep:
    """One step and its VJP; `ranks` has the core axes of each argument, the first one is time."""

    step: Callable
    step_vjp: Callable
    ranks: tuple[int, ...]
    gate: int | None  # which argument is log_g

    def run(self, arguments, S0, resets):
        """The outputs, and the last state if there is a first one."""
        start, resets = self._started(arguments, S0, resets)
        y, _, S = self._states(arguments, start, resets)
        if y:
            y = np.stack(y, axis=-2)
        else:
            shape = (*start.shape[:-2], 0, start.shape[-1])
            y = np.zeros(shape, np.result_type(start, *arguments))
        return (y,) if S0 is None else (y, S)

    def back(self, cotangents, arguments, S0, resets):
        """Gradients for the arguments and S0."""
        start, resets = self._started(arguments, S0, resets)
        dy, carried = (*cotangents, np.zeros_like(start))[:2]
        found = []
        for w, S in reversed(self._blocks(arguments, start, resets)):
            piece, begun = self._cut(arguments, w), resets[..., w]
            _, before, _ = self._states(piece, S, begun)
            for t in range(len(before) - 1, -1, -1):
                now = self._at(piece, begun, t)
                given = dy[..., w.start + t, :], carried
                *gradients, carried = self.step_vjp(*given, *now, before[t])
                found.append(self._without_gate(gradients, piece, begun, t))
                carried = _kept(carried, begun, t, 2)
        S0 = start if S0 is None else S0
        return *self._joined(found[::-1], arguments), unbroadcast(carried, S0)

    def _started(self, arguments, S0, resets):
        """The state before the first step, with all leading axes, and the resets."""
        q, k, v, *_ = arguments
        resets = no_resets(q.shape[-2]) if resets is None else resets
        pairs = zip(arguments, self.ranks, strict=True)
        shapes = [x.shape[: x.ndim - rank] for x, rank in pairs] + [resets.shape[:-1]]
        kind = np.result_type(*arguments[1:])  # q does not enter the state
        if S0 is None:
            batch = np.broadcast_shapes(*shapes)
            return np.zeros_like(k, shape=(*batch, k.shape[-1], v.shape[-1]), dtype=kind), resets
        batch = np.broadcast_shapes(*shapes, S0.shape[:-2])
        return with_batch(S0.astype(np.result_type(kind, S0)), 2, batch), resets

    def _states(self, arguments, S, resets):
        """All outputs, the states before each step, and the last one."""
        y, before = [], []
        for t in range(arguments[0].shape[-2]):
            before.append(_kept(S, resets, t, 2))
            y_t, S = self.step(*self._at(arguments, resets, t), before[-1])
            y.append(y_t)
        return y, before, S

    def _blocks(self, arguments, S, resets):
        """Windows of √l steps, each with the state before it."""
        made = []
        for w in windows(arguments[0].shape[-2]):
            made.append((w, S))
            _, _, S = self._states(self._cut(arguments, w), S, resets[..., w])
        return made

    def _at(self, arguments, resets, t: int):
        """The arguments of step t; a gate does not count where a sequence begins."""
        now = [_time(x, t, rank) for x, rank in zip(arguments, self.ranks, strict=True)]
        if self.gate is not None:
            now[self.gate] = _kept(now[self.gate], resets, t, self.ranks[self.gate] - 1)
        return now

    def _without_gate(self, gradients, arguments, resets, t: int):
        """The gradients of step t: none for a gate where a sequence begins."""
        if self.gate is not None:
            dlog_g = _kept(gradients[self.gate], resets, t, self.ranks[self.gate] - 1)
            log_g = _time(arguments[self.gate], t, self.ranks[self.gate])
            gradients[self.gate] = unbroadcast(dlog_g, log_g)
        return gradients

    def _cut(self, arguments, w: slice):
        return [_time(x, w, rank) for x, rank in zip(arguments, self.ranks, strict=True)]

    def _joined(self, found, arguments):
        """The gradients of all steps, joined along time."""
        if not found:
            return [np.zeros_like(x) for x in arguments]
        parts = zip(zip(*found, strict=True), self.ranks, strict=True)
        return [np.stack(part, axis=-rank) for part, rank in parts]


def _time(x, t, rank: int):
    """The array at a time, or in a window of time."""
    return x[(..., t, *[slice(None)] * (rank - 1))]


def _kept(x, resets, t: int, core: int):
    """x, or exactly 0 where a sequence begins; selected, so NaN does not pass."""
    if not resets[..., t].any():
        return x
    begins = resets[..., t].reshape(*resets.shape[:-1], *[1] * core)
    return np.where(begins, 0, x)
