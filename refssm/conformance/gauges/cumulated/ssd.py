"""Cumulated forms of state-space duality: one logarithm for all p·n numbers of a state."""

from __future__ import annotations

import numpy as np

from refssm.broadcasting import unbroadcast_each
from refssm.conformance.gauges.cumulated.scan import none, with_last
from refssm.conformance.gauges.cumulated.sums import pulled_back, states
from refssm.ssd.recurrent import at_rest, full_state


def _flat(x, B):
    """x_t B_tᵀ as a vector of p·n numbers."""
    product = x[..., :, None] * B[..., None, :]
    return product.reshape(*product.shape[:-2], x.shape[-1] * B.shape[-1])


def _matrices(S, p):
    return S.reshape(*S.shape[:-1], p, S.shape[-1] // p)


def _vector(S):
    return S.reshape(*S.shape[:-2], S.shape[-2] * S.shape[-1])


def _states(x, log_a, B, S0, first):
    """S_{-1} = S0, then all states: (…, l + 1, p, n)."""
    S = states(log_a[..., None], _flat(x, B), _vector(S0), first)
    return _matrices(S, x.shape[-1])


def _read(S, C):
    return np.einsum("...pn,...n->...p", S[..., 1:, :, :], C)


def _back(dy, dS, x, log_a, B, C, S0, first):
    """Cotangents of (x, log_a, B, C, S0), before batch axes are summed."""
    b, p = _flat(x, B), x.shape[-1]
    S = states(log_a[..., None], b, _vector(S0), first)
    d = with_last(_flat(dy, C.conj()), _vector(dS))
    g, dlog_a = pulled_back(d, log_a[..., None], b, S, first)
    G, after = _matrices(g, p), _matrices(S, p)[..., 1:, :, :]
    dx = np.einsum("...pn,...n->...p", G[..., 1:, :, :], B.conj())
    dB = np.einsum("...pn,...p->...n", G[..., 1:, :, :], x.conj())
    dC = np.einsum("...pn,...p->...n", after.conj(), dy)
    return dx, dlog_a[..., 0], dB, dC, G[..., 0, :, :]


def whole(x, log_a, B, C):
    """As `refssm.ssd_recurrent`."""
    return _read(_states(x, log_a, B, at_rest(x, B), none(x)), C)


def whole_vjp(dy, x, log_a, B, C):
    """As `refssm.ssd_recurrent_vjp`."""
    rest = at_rest(x, B)
    gradients = _back(dy, rest, x, log_a, B, C, rest, none(x))
    return unbroadcast_each(gradients[:-1], (x, log_a, B, C))


def stateful(x, log_a, B, C, S0):
    """As `refssm.ssd_recurrent_stateful`."""
    S = _states(x, log_a, B, S0, none(x))
    return _read(S, C), full_state(S[..., -1, :, :], x, log_a, B, C)


def stateful_vjp(dy, dS, x, log_a, B, C, S0):
    """As `refssm.ssd_recurrent_stateful_vjp`."""
    gradients = _back(dy, dS, x, log_a, B, C, S0, none(x))
    return unbroadcast_each(gradients, (x, log_a, B, C, S0))


def packed(x, log_a, B, C, resets):
    """As `refssm.ssd_recurrent_packed`."""
    return _read(_states(x, log_a, B, at_rest(x, B), resets != 0), C)


def packed_vjp(dy, x, log_a, B, C, resets):
    """As `refssm.ssd_recurrent_packed_vjp`."""
    rest = at_rest(x, B)
    gradients = _back(dy, rest, x, log_a, B, C, rest, resets != 0)
    return *unbroadcast_each(gradients[:-1], (x, log_a, B, C)), None
