"""Enclosures for refssm.selective_scan: the sum of the decayed inputs."""

from refssm.enclosure.algebra import dot
from refssm.enclosure.recurrence import forms


def _selective(arguments, x0, resets):
    """y_k = Σ_{j≤k} Σ_n C_kn e^{A_n (dt_{j+1} + … + dt_k)} dt_j u_j B_jn, back to the last reset,
    plus the decayed x0."""
    u, dt, A, B, C = arguments
    x = _states(u, dt, A, B, x0, resets)
    return [dot(C_k, x_k) for C_k, x_k in zip(C, x, strict=True)], x[-1] if x else x0


def _states(u, dt, A, B, x0, resets):
    return [
        [_left(n, A[n], u, dt, B, start, resets, k) for n, start in enumerate(x0)]
        for k in range(len(u))
    ]


def _left(n, pole, u, dt, B, x0, resets, k):
    total, since = 0, 0
    for j in range(k, -1, -1):
        total += (pole * since).exp() * u[j] * B[j][n] * dt[j] if since else u[j] * B[j][n] * dt[j]
        since += dt[j]
        if resets[j]:
            return total
    return total + (pole * since).exp() * x0


def _mamba(arguments, x0, resets):
    """(y_k + D u_k) z_k σ(z_k), y the selective scan with step sizes softplus(dt_k + dt_bias)."""
    u, dt, A, B, C, D, z, dt_bias = arguments
    y, x = _selective((u, _steps(dt, dt_bias), A, B, C), x0, resets)
    return _gated(y, u, D, z), x


def _steps(dt, dt_bias):
    """softplus(v) = v + log(1 + e^{−v})."""
    before = [v + dt_bias for v in dt]
    return [v + (-v).exp().log1p() for v in before]


def _gated(y, u, D, z):
    """Multiply by z σ(z), σ(z) = (1 + tanh z/2)/2."""
    gates = [z_k * (1 + (z_k / 2).tanh()) / 2 for z_k in z]
    return [g * y_k + g * (D * u_k) for g, y_k, u_k in zip(gates, y, u, strict=True)]


def _rest(u, dt, A, *_):
    return [0] * len(A)


(
    selective_scan,
    selective_scan_stateful,
    selective_scan_packed,
    selective_scan_packed_stateful,
    selective_scan_states,
    selective_scan_reversed,
    selective_step,
) = forms(_selective, "11011", _rest)
(
    mamba_scan,
    mamba_scan_stateful,
    mamba_scan_packed,
    mamba_scan_packed_stateful,
    mamba_scan_states,
    mamba_scan_reversed,
    mamba_step,
) = forms(_mamba, "11011010", _rest)
