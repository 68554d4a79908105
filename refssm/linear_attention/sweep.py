"""Runs of the recurrences of linear attention, forward and back, in blocks of √l steps.

The reverse pass needs the states before each step. It keeps those before blocks of √l steps and
computes the states of one block again, from the last block to the first: O(n p √l) numbers for a
head in place of O(n p l) [chen2016training]. Only states and their cotangents are computed one
after the other; the gradients of a block are those of its steps, with time as one more axis.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast, with_batch
from refssm._numerics.contraction import einsum
from refssm.scan.blocks import no_resets, windows


def gates_keys(op: Operator) -> bool:
    """Whether log_g has a number for each key, and not one for all."""
    return "n" in dict(zip(op.inputs, op.input_dims, strict=True)).get("log_g", ())


@dataclass(frozen=True)
class Sweep:
    """A recurrence by its parts; all take time as one more leading axis, too.

    `ready(k, v, …)` is what a step needs of its arguments, as e^{log_g}: made of a block of steps
    at once. `after(…, S)` is the next state from what is ready, `before(G, …)` the cotangent of the
    state before a step from that of the next one, `step_vjp` the VJP of one step. `ranks` has the
    core axes of each argument, `ready_ranks` those of what is ready; the first one is time. `gate`
    says which argument is log_g.
    """

    ready: Callable
    after: Callable
    before: Callable
    step_vjp: Callable
    ranks: tuple[int, ...]
    ready_ranks: tuple[int, ...]
    gate: int | None

    def run(self, arguments, S0, resets):
        """The outputs, and the last state if there is a first one."""
        S, resets = self._started(arguments, S0, resets)
        y = [np.zeros((*S.shape[:-2], 0, S.shape[-1]), np.result_type(S, *arguments))]
        for w in windows(arguments[0].shape[-2]):
            piece = self._cut(arguments, resets, w)
            states = self._states(self.ready(*piece[1:]), S, resets[..., w])
            S = states[-1]
            y.append(einsum("...np,...n->...p", _stacked(states[1:]), piece[0]))
        y = np.concatenate(y[1:], axis=-2) if len(y) > 1 else y[0]
        return (y,) if S0 is None else (y, S)

    def back(self, cotangents, arguments, S0, resets):
        """Gradients for the arguments and S0."""
        start, resets = self._started(arguments, S0, resets)
        dy, dS = (*cotangents, np.zeros_like(start))[:2]
        pieces = []
        for w, S in reversed(self._blocks(arguments, start, resets)):
            piece, begun = self._cut(arguments, resets, w), resets[..., w]
            ready = self.ready(*piece[1:])
            before = self._states(ready, S, begun)[:-1]
            carried, dS = self._carried(piece[0], dy[..., w, :], dS, ready, begun)
            kept = _stacked([_kept(S, begun, t) for t, S in enumerate(before)])
            *gradients, _ = self.step_vjp(dy[..., w, :], carried, *piece, kept)
            pieces.append(self._without_gate(gradients, arguments, begun, w))
        joined = self._joined(pieces[::-1], arguments)
        return *joined, unbroadcast(dS, start if S0 is None else S0)

    def _started(self, arguments, S0, resets):
        """The state before the first step, with all leading axes, and the resets."""
        q, k, v, *_ = arguments
        resets = no_resets(q.shape[-2]) if resets is None else resets != 0
        pairs = zip(arguments, self.ranks, strict=True)
        shapes = [x.shape[: x.ndim - rank] for x, rank in pairs] + [resets.shape[:-1]]
        kind = np.result_type(*arguments[1:])  # q does not enter the state
        if S0 is None:
            batch = np.broadcast_shapes(*shapes)
            return np.zeros_like(k, shape=(*batch, k.shape[-1], v.shape[-1]), dtype=kind), resets
        batch = np.broadcast_shapes(*shapes, S0.shape[:-2])
        return with_batch(S0.astype(np.result_type(kind, S0)), 2, batch), resets

    def _states(self, ready, S, resets):
        """The state before the first step, and those after each."""
        states = [S]
        for t in range(resets.shape[-1]):
            now = _at(ready, t, self.ready_ranks)
            states.append(self.after(*now, _kept(states[-1], resets, t)))
        return states

    def _blocks(self, arguments, S, resets):
        """Windows of √l steps, each with the state before it."""
        made = []
        for w in windows(arguments[0].shape[-2]):
            made.append((w, S))
            ready = self.ready(*self._cut(arguments, resets, w)[1:])
            S = self._states(ready, S, resets[..., w])[-1]
        return made

    def _carried(self, q, dy, dS, ready, resets):
        """The cotangents of the states after each step without its output, and of that before."""
        carried, read = [], q[..., :, None] * dy[..., None, :]
        for t in range(resets.shape[-1] - 1, -1, -1):
            carried.insert(0, dS)
            now = _at(ready, t, self.ready_ranks)
            dS = _kept(self.before(read[..., t, :, :] + dS, *now), resets, t)
        return _stacked(carried), dS

    def _cut(self, arguments, resets, w: slice):
        """The arguments of a window; a gate does not count where a sequence begins."""
        piece = _at(arguments, w, self.ranks)
        if self.gate is not None:
            piece[self.gate] = self._masked(piece[self.gate], resets[..., w])
        return piece

    def _without_gate(self, gradients, arguments, resets, w: slice):
        """The gradients of a window: none for a gate where a sequence begins."""
        if self.gate is not None:
            log_g = _time(arguments[self.gate], w, self.ranks[self.gate])
            gradients[self.gate] = unbroadcast(self._masked(gradients[self.gate], resets), log_g)
        return gradients

    def _masked(self, x, resets):
        """A gate, or its gradient, of some steps; 0 where a sequence begins."""
        if not resets.any():
            return x
        keyed = self.gate is not None and self.ranks[self.gate] == 2
        return np.where(resets[..., None] if keyed else resets, 0, x)

    def _joined(self, pieces, arguments):
        """The gradients of all blocks, joined along time."""
        if not pieces:
            return [np.zeros_like(x) for x in arguments]
        parts = zip(zip(*pieces, strict=True), self.ranks, strict=True)
        return [np.concatenate(part, axis=-rank) for part, rank in parts]


def _at(arrays, t: int | slice, ranks):
    """Each array at a time, or in a window."""
    return [_time(x, t, rank) for x, rank in zip(arrays, ranks, strict=True)]


def _time(x, t, rank: int):
    """The array at a time, or in a window of time."""
    return x[(..., t, *[slice(None)] * (rank - 1))]


def _stacked(states):
    """States with an axis of time before their own."""
    return np.stack(states, axis=-3)


def _kept(S, resets, t: int):
    """The state, or exactly 0 where a sequence begins; selected, so NaN does not pass."""
    if not resets[..., t].any():
        return S
    return np.where(resets[..., t, None, None], 0, S)
