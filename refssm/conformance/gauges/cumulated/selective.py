"""Cumulated forms of the selective scan and of Mamba's scan: log a_t = dt_t A."""

from __future__ import annotations

from refssm.broadcasting import unbroadcast_each, with_batch
from refssm.conformance.gauges.cumulated.scan import none, with_last
from refssm.conformance.gauges.cumulated.sums import pulled_back, states
from refssm.selective_scan.mamba import sigmoid, silu, steps
from refssm.selective_scan.selective import at_rest


def _rates_and_inputs(u, dt, A, B):
    return dt[..., None] * A[..., None, :], (dt * u)[..., None] * B


def _states(u, dt, A, B, x0, first):
    return states(*_rates_and_inputs(u, dt, A, B), x0, first)


def _read(x, C):
    return (C * x[..., 1:, :]).sum(-1)


def _back(dy, dx, u, dt, A, B, C, x0, first):
    """Cotangents of (u, dt, A, B, C, x0), before batch axes are summed."""
    log_a, b = _rates_and_inputs(u, dt, A, B)
    x = states(log_a, b, x0, first)
    d = with_last(C.conj() * dy[..., None], dx)
    g, dlog_a = pulled_back(d, log_a, b, x, first)
    db = g[..., 1:, :]
    du = ((dt[..., None] * B).conj() * db).sum(-1)
    ddt = ((u[..., None] * B).conj() * db + A[..., None, :].conj() * dlog_a).sum(-1)
    dA = (dt[..., None] * dlog_a).sum(-2)
    dB, dC = (dt * u)[..., None].conj() * db, x[..., 1:, :].conj() * dy[..., None]
    return du, ddt, dA, dB, dC, g[..., 0, :]


def selective_scan(u, dt, A, B, C):
    """As `refssm.selective_scan`."""
    return _read(_states(u, dt, A, B, at_rest(u, dt, A, B, C), none(B)), C)


def selective_scan_vjp(dy, u, dt, A, B, C):
    """As `refssm.selective_scan_vjp`."""
    x0 = at_rest(u, dt, A, B, C)
    gradients = _back(dy, x0, u, dt, A, B, C, x0, none(B))
    return unbroadcast_each(gradients[:-1], (u, dt, A, B, C))


def selective_scan_stateful(u, dt, A, B, C, x0):
    """As `refssm.selective_scan_stateful`."""
    x = _states(u, dt, A, B, x0, none(B))
    y = _read(x, C)
    return y, with_batch(x[..., -1, :], 1, y.shape[:-1])


def selective_scan_stateful_vjp(dy, dx, u, dt, A, B, C, x0):
    """As `refssm.selective_scan_stateful_vjp`."""
    gradients = _back(dy, dx, u, dt, A, B, C, x0, none(B))
    return unbroadcast_each(gradients, (u, dt, A, B, C, x0))


def selective_scan_packed(u, dt, A, B, C, resets):
    """As `refssm.selective_scan_packed`."""
    return _read(_states(u, dt, A, B, at_rest(u, dt, A, B, C), resets != 0), C)


def selective_scan_packed_vjp(dy, u, dt, A, B, C, resets):
    """As `refssm.selective_scan_packed_vjp`."""
    x0 = at_rest(u, dt, A, B, C)
    gradients = _back(dy, x0, u, dt, A, B, C, x0, resets != 0)
    return *unbroadcast_each(gradients[:-1], (u, dt, A, B, C)), None


def _gated(y, D, z, u):
    return (y + D[..., None] * u) * silu(z)


def _gated_back(dy, dx, arguments, x0, first):
    """Cotangents of Mamba's arguments and of x0, before batch axes are summed."""
    u, dt, A, B, C, D, z, dt_bias = arguments
    step, open_ = steps(dt, dt_bias), sigmoid(z)
    s = _read(_states(u, step, A, B, x0, first), C) + D[..., None] * u
    ds = dy * (z * open_)
    dz = s.conj() * dy * (open_ * (1 + z * sigmoid(-z)))
    du, dstep, dA, dB, dC, dx0 = _back(ds, dx, u, step, A, B, C, x0, first)
    ddt = dstep * sigmoid(dt + dt_bias[..., None])
    dD = (u.conj() * ds).sum(-1)
    return du + D[..., None].conj() * ds, ddt, dA, dB, dC, dD, dz, ddt.sum(-1), dx0


def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """As `refssm.mamba_scan`."""
    return _gated(selective_scan(u, steps(dt, dt_bias), A, B, C), D, z, u)


def mamba_scan_vjp(dy, *arguments):
    """As `refssm.mamba_scan_vjp`."""
    x0 = at_rest(*arguments[:5])
    gradients = _gated_back(dy, x0, arguments, x0, none(arguments[3]))
    return unbroadcast_each(gradients[:-1], arguments)


def mamba_scan_stateful(u, dt, A, B, C, D, z, dt_bias, x0):
    """As `refssm.mamba_scan_stateful`."""
    y, x = selective_scan_stateful(u, steps(dt, dt_bias), A, B, C, x0)
    y = _gated(y, D, z, u)
    return y, with_batch(x, 1, y.shape[:-1])


def mamba_scan_stateful_vjp(dy, dx, *arguments):
    """As `refssm.mamba_scan_stateful_vjp`."""
    *others, x0 = arguments
    return unbroadcast_each(_gated_back(dy, dx, others, x0, none(others[3])), arguments)


def mamba_scan_packed(u, dt, A, B, C, D, z, dt_bias, resets):
    """As `refssm.mamba_scan_packed`."""
    return _gated(selective_scan_packed(u, steps(dt, dt_bias), A, B, C, resets), D, z, u)


def mamba_scan_packed_vjp(dy, *arguments):
    """As `refssm.mamba_scan_packed_vjp`."""
    *others, resets = arguments
    x0 = at_rest(*others[:5])
    gradients = _gated_back(dy, x0, others, x0, resets != 0)
    return *unbroadcast_each(gradients[:-1], others), None
