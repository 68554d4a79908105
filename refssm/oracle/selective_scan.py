"""Oracles for refssm.selective_scan."""

# pyright: reportAttributeAccessIssue=false
# (mpmath 1.4 adds log1p on import)

from mpmath import mp


def selective_scan(u, dt, A, B, C):
    """y_k = C_k · x_k, x_k = e^{dt_k A} x_{k-1} + dt_k u_k B_k, x_{-1} = 0."""
    return selective_scan_stateful(u, dt, A, B, C, [0] * len(A))[0]


def selective_scan_stateful(u, dt, A, B, C, x0):
    """The same from x_{-1} = x0; and the last state."""
    return _scan(u, dt, A, B, C, x0, [False] * len(u))


def selective_scan_packed(u, dt, A, B, C, resets):
    """The same from rest, and from rest again at each reset."""
    return _scan(u, dt, A, B, C, [0] * len(A), resets)[0]


def _scan(u, dt, A, B, C, x, resets):
    y = []
    for u_k, dt_k, B_k, C_k, reset in zip(u, dt, B, C, resets, strict=True):
        y_k, x = selective_step(u_k, dt_k, A, B_k, C_k, [0] * len(A) if reset else x)
        y.append(y_k)
    return y, x


def selective_step(u, dt, A, B, C, x):
    """One step."""
    x = [mp.exp(dt * w) * s + dt * u * b for w, s, b in zip(A, x, B, strict=True)]
    return mp.fsum(c * s for c, s in zip(C, x, strict=True)), x


def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """y_k = (C_k · x_k + D u_k) silu(z_k), with step sizes softplus(dt_k + dt_bias), from rest."""
    return mamba_scan_stateful(u, dt, A, B, C, D, z, dt_bias, [0] * len(A))[0]


def mamba_scan_stateful(u, dt, A, B, C, D, z, dt_bias, x0):
    """The same from x_{-1} = x0; and the last state."""
    steps = [_softplus(v + dt_bias) for v in dt]
    y, x = selective_scan_stateful(u, steps, A, B, C, x0)
    return _gated(y, u, D, z), x


def mamba_scan_packed(u, dt, A, B, C, D, z, dt_bias, resets):
    """The same from rest, and from rest again at each reset."""
    steps = [_softplus(v + dt_bias) for v in dt]
    return _gated(selective_scan_packed(u, steps, A, B, C, resets), u, D, z)


def mamba_step(u, dt, A, B, C, D, z, dt_bias, x):
    """One step."""
    (y,), x = mamba_scan_stateful([u], [dt], A, [B], [C], D, [z], dt_bias, x)
    return y, x


def _gated(y, u, D, z):
    """(y + D u) z/(1 + e^{−z})."""
    return [
        (y_k + D * u_k) * z_k / (1 + mp.exp(-z_k)) for y_k, u_k, z_k in zip(y, u, z, strict=True)
    ]


def _softplus(v):
    """log(1 + e^v)."""
    return mp.log1p(mp.exp(v))
