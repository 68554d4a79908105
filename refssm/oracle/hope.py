"""Oracles for refssm.hope."""

from mpmath import mp


def hope_stream(h, dt, u):
    """Σ_j h_j s_{j+1}, s_0 = u, s_{j+1,k} = ρ s_{j+1,k−1} + s_{j,k−1} − ρ s_{j,k}."""
    rho, s, y = (1 - dt) / (1 + dt), u, [mp.mpf(0)] * len(u)
    for h_j in h:
        delayed, last_in, last_out = [], mp.mpf(0), mp.mpf(0)
        for into in s:
            last_in, last_out = into, rho * last_out + last_in - rho * into
            delayed.append(last_out)
        s = delayed
        y = [y_k + h_j * s_k for y_k, s_k in zip(y, s, strict=True)]
    return y


def hope_stream_stateful(h, dt, u, x0):
    """Step after step, and the last states."""
    y, x = [], x0
    for u_k in u:
        y_k, x = hope_step(h, dt, u_k, x)
        y.append(y_k)
    return y, x


def hope_step(h, dt, u, x):
    """Rotations of (x_j, s_j) by ρ = cos φ, c = sin φ, tan φ/2 = √dt; y = Σ_j h_j s_{j+1}."""
    rho, c = (1 - dt) / (1 + dt), 2 * mp.sqrt(dt) / (1 + dt)
    s, turned, y = u, [], mp.mpf(0)
    for h_j, x_j in zip(h, x, strict=True):
        turned.append(rho * x_j + c * s)
        s = c * x_j - rho * s
        y += h_j * s
    return y, turned


def hope_recency_power(h, gamma):
    """h_j (j + 1)^γ."""
    return [h_j * mp.mpf(j + 1) ** gamma for j, h_j in enumerate(h)]


def hope_recency_exponential(h, beta):
    """h_j e^{−βj}."""
    return [h_j * mp.exp(-beta * j) for j, h_j in enumerate(h)]
