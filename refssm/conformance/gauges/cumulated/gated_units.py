"""Gated units in any way of adding decayed inputs: their gates give the logarithms of decays."""

from dataclasses import dataclass

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.activations import sigmoid, softplus
from refssm.conformance.gauges.cumulated.scan import none, rest
from refssm.conformance.gauges.cumulated.sums import Way
from refssm.gated_units.minimal_gated import positive, positive_vjp
from refssm.gated_units.real_gated import decay_and_root, first_steps, log_decay


@dataclass(frozen=True)
class RealGated:
    """RG-LRU from rest, from a state and packed, in one way, with the root at first or without."""

    way: Way
    unscaled: bool = False

    def whole(self, u, r, i, a_param):
        return self._states((u, r, i, a_param), None, None)[0][..., 1:, :]

    def whole_vjp(self, dx, *arguments):
        return unbroadcast_each(self._back(dx, arguments, None, None)[:-1], arguments)

    def stateful(self, u, r, i, a_param, x0):
        return self._states((u, r, i, a_param), x0, None)[0][..., 1:, :]

    def stateful_vjp(self, dx, *given):
        return unbroadcast_each(self._back(dx, given[:-1], given[-1], None), given)

    def packed(self, u, r, i, a_param, resets):
        return self._states((u, r, i, a_param), None, resets)[0][..., 1:, :]

    def packed_vjp(self, dx, *given):
        gradients = self._back(dx, given[:-1], None, given[-1])
        return *unbroadcast_each(gradients[:-1], given[:-1]), None

    def _states(self, arguments, x0, resets):
        """All states, x0 before them, and what they are made of."""
        u, r, i, a_param = arguments
        whole = first_steps(u.shape[-2], x0, resets) if self.unscaled else None
        log_a = log_decay(r, a_param[..., None, :])
        _, root, slope = decay_and_root(log_a, whole)
        b = root * (i * u)
        x0 = rest(log_a, b) if x0 is None else x0
        first = none(u) if resets is None else np.asarray(resets) != 0
        return self.way.states(log_a, b, x0, first), log_a, b, root, slope, first

    def _back(self, dx, arguments, x0, resets):
        """Cotangents of the arguments and of x0, before batch axes are summed."""
        u, r, i, a_param = arguments
        x, log_a, b, root, slope, first = self._states(arguments, x0, resets)
        g, dlog_a = self.way.pulled_back(dx, log_a, b, x, first)
        db, over_time = g[..., 1:, :], a_param[..., None, :]
        through = -8 * (dlog_a + slope * (i * u) * db)
        dparam = (r * sigmoid(over_time) * through).sum(-2)
        return root * i * db, softplus(over_time) * through, root * u * db, dparam, g[..., 0, :]


@dataclass(frozen=True)
class MinimalGated:
    """minGRU from rest, from a state and packed, in one way."""

    way: Way

    def whole(self, k, h):
        return self._states(k, h, None, none(k))[0][..., 1:, :]

    def whole_vjp(self, dx, k, h):
        return unbroadcast_each(self._back(dx, k, h, None, none(k))[:-1], (k, h))

    def stateful(self, k, h, x0):
        return self._states(k, h, x0, none(k))[0][..., 1:, :]

    def stateful_vjp(self, dx, k, h, x0):
        return unbroadcast_each(self._back(dx, k, h, x0, none(k)), (k, h, x0))

    def packed(self, k, h, resets):
        return self._states(k, h, None, np.asarray(resets) != 0)[0][..., 1:, :]

    def packed_vjp(self, dx, k, h, resets):
        gradients = self._back(dx, k, h, None, np.asarray(resets) != 0)
        return *unbroadcast_each(gradients[:-1], (k, h)), None

    def _states(self, k, h, x0, first):
        """All states, x0 before them; log(1 − z) and z g(h)."""
        log_a, b = -softplus(k), sigmoid(k) * positive(h)
        x0 = rest(log_a, b) if x0 is None else x0
        return self.way.states(log_a, b, x0, first), log_a, b

    def _back(self, dx, k, h, x0, first):
        """Cotangents of k, h and x0, before batch axes are summed."""
        x, log_a, b = self._states(k, h, x0, first)
        g, dlog_a = self.way.pulled_back(dx, log_a, b, x, first)
        z, db = sigmoid(k), g[..., 1:, :]
        return b * sigmoid(-k) * db - z * dlog_a, positive_vjp(z * db, h), g[..., 0, :]
