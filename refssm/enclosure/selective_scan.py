"""Enclosures for refssm.selective_scan: the sum of the decayed inputs."""

from refssm.enclosure.algebra import dot


def selective_scan(u, dt, A, B, C):
    """y_k = Σ_{j≤k} Σ_n C_kn e^{A_n (dt_{j+1} + … + dt_k)} dt_j u_j B_jn."""
    return selective_scan_stateful(u, dt, A, B, C, [0] * len(A))[0]


def selective_scan_stateful(u, dt, A, B, C, x0):
    """The same plus the decayed x0; and the last state."""
    x = _states(u, dt, A, B, x0, [False] * len(u))
    return [dot(C_k, x_k) for C_k, x_k in zip(C, x, strict=True)], x[-1] if x else x0


def selective_scan_packed(u, dt, A, B, C, resets):
    """The sum back to the last reset."""
    x = _states(u, dt, A, B, [0] * len(A), resets)
    return [dot(C_k, x_k) for C_k, x_k in zip(C, x, strict=True)]


def selective_step(u, dt, A, B, C, x):
    """One step."""
    (y,), x_next = selective_scan_stateful([u], [dt], A, [B], [C], x)
    return y, x_next


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


def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """(y_k + D u_k) z_k σ(z_k), y the selective scan with step sizes softplus(dt_k + dt_bias)."""
    return mamba_scan_stateful(u, dt, A, B, C, D, z, dt_bias, [0] * len(A))[0]


def mamba_scan_stateful(u, dt, A, B, C, D, z, dt_bias, x0):
    """The same from a state; and the last state."""
    y, x = selective_scan_stateful(u, _steps(dt, dt_bias), A, B, C, x0)
    return _gated(y, u, D, z), x


def mamba_scan_packed(u, dt, A, B, C, D, z, dt_bias, resets):
    """The same, back to the last reset."""
    return _gated(selective_scan_packed(u, _steps(dt, dt_bias), A, B, C, resets), u, D, z)


def mamba_step(u, dt, A, B, C, D, z, dt_bias, x):
    """One step."""
    (y,), x_next = mamba_scan_stateful([u], [dt], A, [B], [C], D, [z], dt_bias, x)
    return y, x_next


def _steps(dt, dt_bias):
    """softplus(v) = v + log(1 + e^{−v})."""
    before = [v + dt_bias for v in dt]
    return [v + (-v).exp().log1p() for v in before]


def _gated(y, u, D, z):
    """Multiply by z σ(z), σ(z) = (1 + tanh z/2)/2."""
    gates = [z_k * (1 + (z_k / 2).tanh()) / 2 for z_k in z]
    return [g * y_k + g * (D * u_k) for g, y_k, u_k in zip(gates, y, u, strict=True)]
