"""Cumulated forms of linear scans and of diagonal systems with one decay per step.

The decay a_t is s_t e^{log|a_t|} with its sign s_t, which is exact; a complex one is e^{log a_t}. A
decay of 0 has no logarithm: from there on the form gives no bound.
"""

from __future__ import annotations

import numpy as np

from refssm.broadcasting import unbroadcast_each, with_batch
from refssm.conformance.gauges.cumulated.sums import pulled_back, states
from refssm.scan.diagonal import driven, read, skipped_back


def logarithms(a):
    """The products of the signs up to each step, and log|a|; 1 and log a if `a` is complex."""
    if np.iscomplexobj(a):
        return np.ones(()), np.log(a)
    return np.cumprod(np.sign(a), axis=-2), np.log(np.abs(a))


def rest(a, b):
    """A state of zeros."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return np.zeros_like(b, shape=(*batch, b.shape[-1]))


def none(b):
    """No sequence begins after the start."""
    return np.zeros(b.shape[-2], bool)


def scanned(a, b, x0, first):
    """All states, x0 before them, with the signs of `a` put back."""
    signs, log_a = logarithms(a)
    x = states(log_a, signs * b, x0, first)
    return np.concatenate([x[..., :1, :], signs * x[..., 1:, :]], axis=-2)


def scanned_back(d, a, b, x0, first):
    """Cotangents of a, b and x0."""
    signs, log_a = logarithms(a)
    x = states(log_a, signs * b, x0, first)
    g, dlog_a = pulled_back(signs * d, log_a, signs * b, x, first)
    return dlog_a / a.conj(), signs * g[..., 1:, :], g[..., 0, :]


def linear_scan(a, b):
    """As `refssm.linear_scan`."""
    return scanned(a, b, rest(a, b), none(b))[..., 1:, :]


def linear_scan_vjp(dx, a, b):
    """As `refssm.linear_scan_vjp`."""
    da, db, _ = scanned_back(dx, a, b, rest(a, b), none(b))
    return unbroadcast_each((da, db), (a, b))


def linear_scan_from(a, b, x0):
    """As `refssm.linear_scan_from`."""
    return scanned(a, b, x0, none(b))[..., 1:, :]


def linear_scan_from_vjp(dx, a, b, x0):
    """As `refssm.linear_scan_from_vjp`."""
    return unbroadcast_each(scanned_back(dx, a, b, x0, none(b)), (a, b, x0))


def linear_scan_packed(a, b, resets):
    """As `refssm.linear_scan_packed`."""
    return scanned(a, b, rest(a, b), _after_start(resets))[..., 1:, :]


def linear_scan_packed_vjp(dx, a, b, resets):
    """As `refssm.linear_scan_packed_vjp`."""
    da, db, _ = scanned_back(dx, a, b, rest(a, b), _after_start(resets))
    return *unbroadcast_each((da, db), (a, b)), None


def _after_start(resets):
    return np.asarray(resets) != 0


def diagonal_ssm_varying(a, B, C, D, u):
    """As `refssm.diagonal_ssm_varying`."""
    b = driven(B, u)
    return read(C, scanned(a, b, rest(a, b), none(b))[..., 1:, :]) + read(D, u)


def diagonal_ssm_varying_vjp(dy, a, B, C, D, u):
    """As `refssm.diagonal_ssm_varying_vjp`."""
    x0 = rest(a, driven(B, u))
    gradients = diagonal_back(dy, np.zeros_like(x0), a, B, C, D, u, x0)[:-1]
    return unbroadcast_each(gradients, (a, B, C, D, u))


def diagonal_ssm_varying_stateful(a, B, C, D, u, x0):
    """As `refssm.diagonal_ssm_varying_stateful`."""
    x = scanned(a, driven(B, u), x0, none(u))
    y = read(C, x[..., 1:, :]) + read(D, u)
    return y, with_batch(x[..., -1, :], 1, y.shape[:-2])


def diagonal_ssm_varying_stateful_vjp(dy, dx, a, B, C, D, u, x0):
    """As `refssm.diagonal_ssm_varying_stateful_vjp`."""
    return unbroadcast_each(diagonal_back(dy, dx, a, B, C, D, u, x0), (a, B, C, D, u, x0))


def diagonal_back(dy, dx, a, B, C, D, u, x0):
    """Cotangents of all arguments, from those of the outputs and of the last state."""
    b = driven(B, u)
    x = scanned(a, b, x0, none(u))[..., 1:, :]
    d = with_last(driven(C.conj().swapaxes(-1, -2), dy), dx)
    da, db, dx0 = scanned_back(d, a, b, x0, none(u))
    dB = np.einsum("...ln,...lm->...nm", db, u.conj())
    dC = np.einsum("...lp,...ln->...pn", dy, x.conj())
    dD, skipped = skipped_back(dy, D, u)
    return da, dB, dC, dD, np.einsum("...nm,...ln->...lm", B.conj(), db) + skipped, dx0


def with_last(d, last):
    """The cotangents of all states, with that of the last state added to the last of them."""
    batch = np.broadcast_shapes(d.shape[:-2], last.shape[:-1])
    d = np.broadcast_to(d, (*batch, *d.shape[-2:]))
    return np.concatenate([d[..., :-1, :], d[..., -1:, :] + last[..., None, :]], axis=-2)
