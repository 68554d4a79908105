"""The selective scan and Mamba's scan, log a_t = dt_t A, in any way of adding decayed inputs."""

from dataclasses import dataclass

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.activations import sigmoid, silu
from refssm.conformance.gauges.cumulated.scan import none, with_last
from refssm.conformance.gauges.cumulated.sums import Way
from refssm.selective_scan.mamba import steps
from refssm.selective_scan.selective import at_rest


def _rates_and_inputs(u, dt, A, B):
    return dt[..., None] * A[..., None, :], (dt * u)[..., None] * B


def _read(x, C):
    return (C * x[..., 1:, :]).sum(-1)


def _gated(y, D, z, u):
    return (y + D[..., None] * u) * silu(z)


@dataclass(frozen=True)
class SelectiveScans:
    """The functions of `refssm` with these names, in one way."""

    way: Way

    def selective_scan(self, u, dt, A, B, C):
        return _read(self._states(u, dt, A, B, at_rest(u, dt, A, B, C), none(B)), C)

    def selective_scan_vjp(self, dy, u, dt, A, B, C):
        x0 = at_rest(u, dt, A, B, C)
        gradients = self._back(dy, x0, u, dt, A, B, C, x0, none(B))
        return unbroadcast_each(gradients[:-1], (u, dt, A, B, C))

    def selective_scan_stateful(self, u, dt, A, B, C, x0):
        x = self._states(u, dt, A, B, x0, none(B))
        y = _read(x, C)
        return y, with_batch(x[..., -1, :], 1, y.shape[:-1])

    def selective_scan_stateful_vjp(self, dy, dx, u, dt, A, B, C, x0):
        gradients = self._back(dy, dx, u, dt, A, B, C, x0, none(B))
        return unbroadcast_each(gradients, (u, dt, A, B, C, x0))

    def selective_scan_packed(self, u, dt, A, B, C, resets):
        return _read(self._states(u, dt, A, B, at_rest(u, dt, A, B, C), resets != 0), C)

    def selective_scan_packed_vjp(self, dy, u, dt, A, B, C, resets):
        x0 = at_rest(u, dt, A, B, C)
        gradients = self._back(dy, x0, u, dt, A, B, C, x0, resets != 0)
        return *unbroadcast_each(gradients[:-1], (u, dt, A, B, C)), None

    def mamba_scan(self, u, dt, A, B, C, D, z, dt_bias):
        return _gated(self.selective_scan(u, steps(dt, dt_bias), A, B, C), D, z, u)

    def mamba_scan_vjp(self, dy, *arguments):
        x0 = at_rest(*arguments[:5])
        gradients = self._gated_back(dy, x0, arguments, x0, none(arguments[3]))
        return unbroadcast_each(gradients[:-1], arguments)

    def mamba_scan_stateful(self, u, dt, A, B, C, D, z, dt_bias, x0):
        y, x = self.selective_scan_stateful(u, steps(dt, dt_bias), A, B, C, x0)
        y = _gated(y, D, z, u)
        return y, with_batch(x, 1, y.shape[:-1])

    def mamba_scan_stateful_vjp(self, dy, dx, *arguments):
        *others, x0 = arguments
        gradients = self._gated_back(dy, dx, others, x0, none(others[3]))
        return unbroadcast_each(gradients, arguments)

    def mamba_scan_packed(self, u, dt, A, B, C, D, z, dt_bias, resets):
        y = self.selective_scan_packed(u, steps(dt, dt_bias), A, B, C, resets)
        return _gated(y, D, z, u)

    def mamba_scan_packed_vjp(self, dy, *arguments):
        *others, resets = arguments
        x0 = at_rest(*others[:5])
        gradients = self._gated_back(dy, x0, others, x0, resets != 0)
        return *unbroadcast_each(gradients[:-1], others), None

    def _states(self, u, dt, A, B, x0, first):
        return self.way.states(*_rates_and_inputs(u, dt, A, B), x0, first)

    def _back(self, dy, dx, u, dt, A, B, C, x0, first):
        """Cotangents of (u, dt, A, B, C, x0), before batch axes are summed."""
        log_a, b = _rates_and_inputs(u, dt, A, B)
        x = self.way.states(log_a, b, x0, first)
        d = with_last(C.conj() * dy[..., None], dx)
        g, dlog_a = self.way.pulled_back(d, log_a, b, x, first)
        db = g[..., 1:, :]
        du = ((dt[..., None] * B).conj() * db).sum(-1)
        ddt = ((u[..., None] * B).conj() * db + A[..., None, :].conj() * dlog_a).sum(-1)
        dA = (dt[..., None] * dlog_a).sum(-2)
        dB, dC = (dt * u)[..., None].conj() * db, x[..., 1:, :].conj() * dy[..., None]
        return du, ddt, dA, dB, dC, g[..., 0, :]

    def _gated_back(self, dy, dx, arguments, x0, first):
        """Cotangents of Mamba's arguments and of x0, before batch axes are summed."""
        u, dt, A, B, C, D, z, dt_bias = arguments
        step, open_ = steps(dt, dt_bias), sigmoid(z)
        s = _read(self._states(u, step, A, B, x0, first), C) + D[..., None] * u
        ds = dy * (z * open_)
        dz = s.conj() * dy * (open_ * (1 + z * sigmoid(-z)))
        du, dstep, dA, dB, dC, dx0 = self._back(ds, dx, u, step, A, B, C, x0, first)
        ddt = dstep * sigmoid(dt + dt_bias[..., None])
        dD = (u.conj() * ds).sum(-1)
        return du + D[..., None].conj() * ds, ddt, dA, dB, dC, dD, dz, ddt.sum(-1), dx0
