"""Gated linear attention, with a decay for each key, in any way of adding decayed inputs.

Each value is a member of the batch: the states of one value are a scan over keys.
"""

from dataclasses import dataclass

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm._numerics.contraction import einsum
from refssm.conformance.gauges.cumulated.scan import none, with_last
from refssm.conformance.gauges.cumulated.sums import Way
from refssm.linear_attention.reads_first import ReadsFirst
from refssm.ssd.recurrent import at_rest


def _outer(keyed, valued):
    """k_t v_tᵀ for each value, (…, p, l, n)."""
    return keyed[..., None, :, :] * np.moveaxis(valued, -1, -2)[..., None]


@dataclass(frozen=True)
class GatedLinear:
    """`gated_linear_recurrence`, with states and packed, in one way; states here are p × n."""

    way: Way

    def whole(self, q, k, v, log_g):
        return self._read(self._states(k, v, log_g, at_rest(v, k), none(k)), q)

    def whole_vjp(self, dy, q, k, v, log_g):
        rest = at_rest(v, k)
        *gradients, _ = self._back(dy, rest, q, k, v, log_g, rest, none(k))
        return unbroadcast_each(gradients, (q, k, v, log_g))

    def stateful(self, q, k, v, log_g, S0):
        S = self._states(k, v, log_g, np.moveaxis(S0, -1, -2), none(k))
        y = self._read(S, q)
        return y, with_batch(np.moveaxis(S[..., -1, :], -1, -2), 2, y.shape[:-2])

    def stateful_vjp(self, dy, dS, q, k, v, log_g, S0):
        dS, start = (np.moveaxis(x, -1, -2) for x in (dS, S0))
        *gradients, dS0 = self._back(dy, dS, q, k, v, log_g, start, none(k))
        return unbroadcast_each((*gradients, np.moveaxis(dS0, -1, -2)), (q, k, v, log_g, S0))

    def packed(self, q, k, v, log_g, resets):
        first = (resets != 0)[..., None, :]
        return self._read(self._states(k, v, log_g, at_rest(v, k), first), q)

    def packed_vjp(self, dy, q, k, v, log_g, resets):
        rest, first = at_rest(v, k), (resets != 0)[..., None, :]
        *gradients, _ = self._back(dy, rest, q, k, v, log_g, rest, first)
        return *unbroadcast_each(gradients, (q, k, v, log_g)), None

    def _states(self, k, v, log_g, S0, first):
        """All states, S0 before them: (…, p, l + 1, n)."""
        return self.way.states(log_g[..., None, :, :], _outer(k, v), S0, first)

    @staticmethod
    def _read(S, q):
        return einsum("...pln,...ln->...lp", S[..., 1:, :], q)

    def _back(self, dy, dS, q, k, v, log_g, S0, first):
        """Cotangents of (q, k, v, log_g, S0), before batch axes are summed."""
        b, decays = _outer(k, v), log_g[..., None, :, :]
        S = self.way.states(decays, b, S0, first)
        g, dlog_g = self.way.pulled_back(with_last(_outer(q, dy), dS), decays, b, S, first)
        after, G = S[..., 1:, :], g[..., 1:, :]
        dq = einsum("...pln,...lp->...ln", after, dy)
        dk = einsum("...pln,...lp->...ln", G, v)
        dv = einsum("...pln,...ln->...lp", G, k)
        return dq, dk, dv, dlog_g.sum(-3), g[..., 0, :]


@dataclass(frozen=True)
class ReadingFirst:
    """`rwkv6`, with states and packed, in one way: gated linear attention, read one step later."""

    way: Way

    def whole(self, *arguments):
        return self._first.run(arguments, None, None)[0]

    def whole_vjp(self, dy, *arguments):
        return self._first.back((dy,), arguments, None, None)[:-1]

    def stateful(self, *given):
        return self._first.run(given[:-1], given[-1], None)

    def stateful_vjp(self, dy, dS, *given):
        return self._first.back((dy, dS), given[:-1], given[-1], None)

    def packed(self, *given):
        return self._first.run(given[:-1], None, given[-1])[0]

    def packed_vjp(self, dy, *given):
        return *self._first.back((dy,), given[:-1], None, given[-1])[:-1], None

    @property
    def _first(self) -> ReadsFirst:
        return ReadsFirst(self._run, self._back)

    def _run(self, arguments, S0, resets):
        after, (q, k, v, log_g) = GatedLinear(self.way), arguments
        if S0 is not None:
            return after.stateful(q, k, v, log_g, S0)
        if resets is not None:
            return (after.packed(q, k, v, log_g, resets),)
        return (after.whole(q, k, v, log_g),)

    def _back(self, cotangents, arguments, S0, resets):
        after, (q, k, v, log_g) = GatedLinear(self.way), arguments
        dy, *dS = cotangents
        if S0 is not None:
            return after.stateful_vjp(dy, dS[0], q, k, v, log_g, S0)
        if resets is not None:
            return after.packed_vjp(dy, q, k, v, log_g, resets)
        return *after.whole_vjp(dy, q, k, v, log_g), None
