"""Mamba-2's whole call around state-space duality in any way of adding decayed inputs."""

from dataclasses import dataclass

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.activations import silu
from refssm.conformance.gauges.cumulated.scan import none
from refssm.conformance.gauges.cumulated.ssd import Dual
from refssm.conformance.gauges.cumulated.sums import Way
from refssm.ssd.mamba2 import gate_back, scaled, steps_back
from refssm.ssd.recurrent import at_rest


def _skipped(arguments):
    """D x."""
    return arguments[5][..., None, None] * arguments[0]


def _gated(s, arguments):
    return (s + _skipped(arguments)) * silu(arguments[6])


def _given(arguments, limits):
    """The arguments of the recurrence."""
    x, dt, A, B, C, _, _, dt_bias = arguments
    return *scaled(x, dt, A, dt_bias, **limits), B, C


@dataclass(frozen=True)
class Mamba2Scans:
    """`mamba2_scan`, with states and packed, in one way."""

    way: Way

    def whole(self, *arguments, **limits):
        return _gated(Dual(self.way).whole(*_given(arguments, limits)), arguments)

    def whole_vjp(self, dy, *arguments, **limits):
        rest = at_rest(arguments[0], arguments[3])
        gradients = self._back(dy, rest, arguments, rest, none(arguments[0]), limits)
        return unbroadcast_each(gradients[:-1], arguments)

    def stateful(self, *given, **limits):
        *arguments, S0 = given
        s, S = Dual(self.way).stateful(*_given(arguments, limits), S0)
        y = _gated(s, arguments)
        return y, with_batch(S, 2, y.shape[:-2])

    def stateful_vjp(self, dy, dS, *given, **limits):
        *arguments, S0 = given
        gradients = self._back(dy, dS, arguments, S0, none(arguments[0]), limits)
        return unbroadcast_each(gradients, given)

    def packed(self, *given, **limits):
        *arguments, resets = given
        return _gated(Dual(self.way).packed(*_given(arguments, limits), resets), arguments)

    def packed_vjp(self, dy, *given, **limits):
        *arguments, resets = given
        rest = at_rest(arguments[0], arguments[3])
        gradients = self._back(dy, rest, arguments, rest, resets != 0, limits)
        return *unbroadcast_each(gradients[:-1], arguments), None

    def _back(self, dy, dS, arguments, S0, first, limits):
        """Cotangents of the arguments and S0, before batch axes are summed."""
        x, dt, A, _, _, D, z, dt_bias = arguments
        given, dual = _given(arguments, limits), Dual(self.way)
        s = dual.read(*given, S0, first) + _skipped(arguments)
        ds, dz = gate_back(dy, s, z)
        dv, dlog_a, dB, dC, dS0 = dual.back(ds, dS, *given, S0, first)
        v = dt + dt_bias[..., None]
        dx, dA, ddt = steps_back(dv, dlog_a, x, v, A[..., None], **limits)
        dx, dD = dx + D[..., None, None] * ds, (x * ds).sum((-2, -1))
        return dx, ddt, dA.sum(-1), dB, dC, dD, dz, ddt.sum(-1), dS0
