"""State-space duality, one decay for all p·n numbers of a state, in any way of adding them."""

from dataclasses import dataclass

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.conformance.gauges.cumulated.scan import none, with_last
from refssm.conformance.gauges.cumulated.sums import Way
from refssm.ssd.recurrent import at_rest, full_state


def _flat(x, B):
    """x_t B_tᵀ as a vector of p·n numbers."""
    product = x[..., :, None] * B[..., None, :]
    return product.reshape(*product.shape[:-2], x.shape[-1] * B.shape[-1])


def _matrices(S, p):
    return S.reshape(*S.shape[:-1], p, S.shape[-1] // p)


def _vector(S):
    return S.reshape(*S.shape[:-2], S.shape[-2] * S.shape[-1])


def _read(S, C):
    return np.einsum("...pn,...n->...p", S[..., 1:, :, :], C)


@dataclass(frozen=True)
class Dual:
    """`ssd_recurrent`, with states and packed, in one way."""

    way: Way

    def whole(self, x, log_a, B, C):
        return _read(self._states(x, log_a, B, at_rest(x, B), none(x)), C)

    def whole_vjp(self, dy, x, log_a, B, C):
        rest = at_rest(x, B)
        gradients = self.back(dy, rest, x, log_a, B, C, rest, none(x))
        return unbroadcast_each(gradients[:-1], (x, log_a, B, C))

    def stateful(self, x, log_a, B, C, S0):
        S = self._states(x, log_a, B, S0, none(x))
        return _read(S, C), full_state(S[..., -1, :, :], x, log_a, B, C)

    def stateful_vjp(self, dy, dS, x, log_a, B, C, S0):
        gradients = self.back(dy, dS, x, log_a, B, C, S0, none(x))
        return unbroadcast_each(gradients, (x, log_a, B, C, S0))

    def packed(self, x, log_a, B, C, resets):
        return _read(self._states(x, log_a, B, at_rest(x, B), resets != 0), C)

    def packed_vjp(self, dy, x, log_a, B, C, resets):
        rest = at_rest(x, B)
        gradients = self.back(dy, rest, x, log_a, B, C, rest, resets != 0)
        return *unbroadcast_each(gradients[:-1], (x, log_a, B, C)), None

    def _states(self, x, log_a, B, S0, first):
        """S_{-1} = S0, then all states: (…, l + 1, p, n)."""
        S = self.way.states(log_a[..., None], _flat(x, B), _vector(S0), first)
        return _matrices(S, x.shape[-1])

    def read(self, x, log_a, B, C, S0, first):
        """The outputs from a state, packed or not."""
        return _read(self._states(x, log_a, B, S0, first), C)

    def back(self, dy, dS, x, log_a, B, C, S0, first):
        """Cotangents of (x, log_a, B, C, S0), before batch axes are summed."""
        b, p = _flat(x, B), x.shape[-1]
        S = self.way.states(log_a[..., None], b, _vector(S0), first)
        d = with_last(_flat(dy, C.conj()), _vector(dS))
        g, dlog_a = self.way.pulled_back(d, log_a[..., None], b, S, first)
        G, after = _matrices(g, p), _matrices(S, p)[..., 1:, :, :]
        dx = np.einsum("...pn,...n->...p", G[..., 1:, :, :], B.conj())
        dB = np.einsum("...pn,...p->...n", G[..., 1:, :, :], x.conj())
        dC = np.einsum("...pn,...p->...n", after.conj(), dy)
        return dx, dlog_a[..., 0], dB, dC, G[..., 0, :, :]
