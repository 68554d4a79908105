"""mLSTM by sums of log_f, in any way of adding decayed inputs: linear attention without units.

Public code weighs step j at step i by e^{F_i − F_j + i_j − m_i} with F the sums of log_f, whatever
m is. Here e^i and e^{log_f} are as they are, which double precision holds; F is rounded alike.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from refssm._numerics.broadcasting import unbroadcast, unbroadcast_each, with_batch
from refssm._numerics.scales import as_excess, as_remains, as_scale, in_units, larger_vjp
from refssm.conformance.gauges.cumulated.gated_linear import GatedLinear
from refssm.conformance.gauges.cumulated.sums import Way
from refssm.xlstm import ATTENTION, beside, scales_of, shared, with_ones


@dataclass(frozen=True)
class Mlstm:
    """`mlstm`, with states and packed, in one way; eps is 0, and the chunk changes nothing."""

    way: Way

    def whole(self, *arguments, eps=0.0, chunk=0):
        return self._run(arguments, None, None)[0]

    def whole_vjp(self, dy, *arguments, eps=0.0, chunk=0):
        return self._back((dy,), arguments, None, None)

    def stateful(self, *args, eps=0.0, chunk=0):
        return self._run(args[:5], args[5:], None)

    def stateful_vjp(self, *args, eps=0.0, chunk=0):
        return self._back(args[:4], args[4:9], args[9:], None)

    def packed(self, *args, eps=0.0, chunk=0):
        return self._run(args[:-1], None, args[-1])[0]

    def packed_vjp(self, dy, *args, eps=0.0, chunk=0):
        return *self._back((dy,), args[:-1], None, args[-1]), None

    def _run(self, arguments, state, resets):
        """The outputs, and the last state in units of e^{−m}."""
        (*_, m), given, start = self._given(arguments, state, resets)
        read, last = self._linear(given, start, resets)
        y = read[..., :-1] / np.maximum(np.abs(read[..., -1:]), 1)
        if state is None:
            return (y,)
        last = np.exp(-as_scale(m))[..., None, None] * last
        return y, last[..., :-1], last[..., -1], with_batch(m, 0, y.shape[:-2])

    def _back(self, cotangents, arguments, state, resets):
        """Gradients for the arguments and the state."""
        i, log_f = arguments[3:]
        (before, _, m_last), given, start = self._given(arguments, state, resets)
        read, last = self._linear(given, start, resets)
        num, a = read[..., :-1], read[..., -1]
        d = np.maximum(np.abs(a), 1)
        dnum = cotangents[0] / d[..., None]
        dd = -(dnum * num).sum(-1) / d
        dread = beside(dnum, larger_vjp(dd, a, np.ones(())))
        family: Any = GatedLinear(self.way)
        left = 0 * m_last
        if state is None:
            of = family.whole_vjp if resets is None else family.packed_vjp
            found = of(dread, *given, *([] if resets is None else [resets]))
        else:
            unit = np.exp(-as_scale(m_last))[..., None, None]
            dlast = in_units(beside(*cotangents[1:3]), m_last)
            found = family.stateful_vjp(dread, unit * dlast, *given, start)
            left = as_excess(cotangents[3] - (dlast * (unit * last)).sum((-1, -2)))
        dq, dkeys, dv, dgates = found[:4]
        di, db = (dkeys * given[1]).sum(-1), dgates.sum(-1)
        of_m = as_remains(0 * d, ATTENTION.sizes, cotangents, arguments, state, resets)
        left, of_b, of_i = shared(left, of_m, log_f + before < i, resets)
        db, di = db + unbroadcast(of_b, db), di + unbroadcast(of_i, di)
        gradients = dq, np.exp(i)[..., None] * dkeys, dv[..., :-1], di, db
        gradients = unbroadcast_each(gradients, arguments)
        if state is None:
            return gradients
        dS0 = np.exp(state[2])[..., None, None] * found[4]
        dm = left + (found[4] * start).sum((-1, -2))
        return *gradients, *unbroadcast_each((dS0[..., :-1], dS0[..., -1], dm), state)

    @staticmethod
    def _given(arguments, state, resets):
        """All m, and the arguments and the state of gated linear attention."""
        q, k, v, i, log_f = arguments
        scales = scales_of(i, log_f, None if state is None else state[2], resets)
        gates = log_f[..., None] + np.zeros_like(k, shape=k.shape[-1:])
        start = None
        if state is not None:
            start = np.exp(state[2])[..., None, None] * beside(state[0], state[1])
        return scales, (q, np.exp(i)[..., None] * k, with_ones(v), gates), start

    def _linear(self, given, start, resets):
        """Sᵀ q at all steps, and the last state."""
        family: Any = GatedLinear(self.way)
        if start is not None:
            return family.stateful(*given, start)
        if resets is not None:
            return family.packed(*given, resets), None
        return family.whole(*given), None
