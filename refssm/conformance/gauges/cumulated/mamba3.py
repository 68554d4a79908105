"""Mamba-3 by sums of log_g, and with angles that are summed without taking whole turns away.

A plain sum of angles has the roundings of its own size, at step t up to |φ_1| + … + |φ_t| of them,
where a sum within a turn has 2π t. Where 16 times that leaves an angle no digit, the sums are those
of chunks: a long row must not excuse short chunks.
"""

from dataclasses import dataclass

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm._numerics.circle import kept, summed_angles, within_turn
from refssm._numerics.contraction import einsum
from refssm._numerics.overridable import overridable
from refssm.conformance.gauges.cumulated.scan import with_last
from refssm.conformance.gauges.cumulated.sums import ALLOWED, CHUNK, Way
from refssm.conformance.gauges.rules import rule
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, lifted, modulus, spread
from refssm.mamba3 import BeforeInput

LOST = 0.5  # of a radian: an angle that may be off by so much has no digits


@overridable
def plain_angles(moves, first, begins):
    """As `summed_angles`, from sums that keep all turns."""
    batch = np.broadcast_shapes(moves.shape[:-2], first.shape[:-1], begins.shape[:-1])
    phase, found = with_batch(first, 1, batch), []
    for t in range(moves.shape[-2]):
        phase = kept(phase, begins, t) + moves[..., t, :]
        found.append(phase)
    return within_turn(np.stack(found, axis=-2)) if found else moves + phase[..., None, :]


@rule(FUNCTIONS, plain_angles)
def _plain_angles(moves, first, begins):
    """The roundings of each sum, over the row or within chunks."""
    moves, first = lifted(moves), lifted(first)
    phase = summed_angles(moves.value, first.value, begins)
    by_row = _rounded(moves, first, begins, moves.shape[-2] + 1)
    by_chunk = _rounded(moves, first, begins, CHUNK)
    if not by_row.size:
        return Tracked(phase, by_row)
    off = spread(Tracked(0 * phase, ALLOWED * by_row)).max((-3, -1), keepdims=True)
    return Tracked(phase, np.where(off < LOST, by_row, by_chunk))


def _rounded(moves, first, begins, chunk):
    """The errors of sums from which whole turns are taken every `chunk` steps."""
    shape = np.broadcast_shapes(moves.shape, (*first.shape[:-1], 1, 1), (*begins.shape, 1))
    phase, errors, found = with_batch(first.value, 1, shape[:-2]), first.errors, []
    for t in range(moves.shape[-2]):
        phase = kept(phase, begins, t)
        errors = np.where(begins[..., t, None, None], 0, errors)
        if t and t % chunk == 0:
            errors = errors + (2 * modulus(phase))[..., None]
            phase = within_turn(phase)
        phase = phase + moves.value[..., t, :]
        errors = errors + modulus(phase)[..., None] + moves.errors[..., t, :, :]
        found.append(errors)
    return np.stack(found, axis=-3) if found else np.zeros((*shape, 2))


@dataclass(frozen=True)
class SummedAttention:
    """Gated linear attention with one gate for all keys, in one way."""

    way: Way

    def run(self, arguments, S0, begins):
        """The outputs and the last state."""
        q = arguments[0]
        S = self._states(arguments, S0, begins)
        y = einsum("...pln,...ln->...lp", S[..., 1:, :], q)
        return y, with_batch(np.moveaxis(S[..., -1, :], -1, -2), 2, y.shape[:-2])

    def back(self, cotangents, arguments, S0, begins):
        """Gradients for the arguments and S0."""
        (dy, dS), (q, k, v, log_g) = cotangents, arguments
        S, b = self._states(arguments, S0, begins), _outer(k, v)
        given = with_last(_outer(q, dy), np.moveaxis(dS, -1, -2))
        g, dlog_g = self.way.pulled_back(given, *self._decays(log_g, b, S, begins))
        G = g[..., 1:, :]
        gradients = (
            einsum("...pln,...lp->...ln", S[..., 1:, :], dy),
            einsum("...pln,...lp->...ln", G, v),
            einsum("...pln,...ln->...lp", G, k),
            dlog_g.sum((-3, -1)),
            np.moveaxis(g[..., 0, :], -1, -2),
        )
        return unbroadcast_each(gradients, (*arguments, S0))

    def _states(self, arguments, S0, begins):
        """All states, S0 before them: (…, p, l + 1, n)."""
        _, k, v, log_g = arguments
        decays, b, _, first = self._decays(log_g, _outer(k, v), None, begins)
        return self.way.states(decays, b, np.moveaxis(S0, -1, -2), first)

    @staticmethod
    def _decays(log_g, b, S, begins):
        return log_g[..., None, :, None], b, S, begins[..., None, :]


def _outer(keyed, valued):
    """k_t v_tᵀ for each value, (…, p, l, n)."""
    return keyed[..., None, :, :] * np.moveaxis(valued, -1, -2)[..., None]


@dataclass(frozen=True)
class TurnedSums:
    """`mamba3_siso`, with states and packed, in one way."""

    way: Way

    def whole(self, *arguments):
        return self._of(arguments, None, None).run()[0]

    def whole_vjp(self, dy, *arguments):
        return self._of(arguments, None, None, dy.shape[:-2]).back_from(dy)[:7]

    def stateful(self, *args):
        return self._of(args[:7], args[7:], None).run()

    def stateful_vjp(self, *args):
        return self._of(args[5:12], args[12:], None, args[0].shape[:-2]).back(*args[:5])

    def packed(self, *args):
        return self._of(args[:-1], None, args[-1]).run()[0]

    def packed_vjp(self, dy, *args):
        return *self._of(args[:-1], None, args[-1], dy.shape[:-2]).back_from(dy)[:7], None

    def _of(self, arguments, state, resets, batch=()) -> BeforeInput:
        how = {"attention": SummedAttention(self.way), "angles": plain_angles}
        return BeforeInput(arguments, state, resets, batch=batch, **how)
