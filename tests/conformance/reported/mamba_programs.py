"""Wrong and right programs of Mamba's scan, written after public bug reports."""

import numpy as np


def silu_and_slope(z):
    """z times the logistic function, and its derivative."""
    e = np.exp(-abs(z))
    s, t = np.where(z < 0, e, 1) / (1 + e), np.where(z < 0, 1, e) / (1 + e)
    return z * s, s * (1 + z * t)


def softplus(v):
    """log(1 + e^v) with all digits."""
    return np.maximum(v, 0) + np.log1p(np.exp(-abs(v)))


def at_least_a_thousandth(v):
    """The step is kept at or above 0.001 after the softplus."""
    return np.maximum(softplus(v), v.dtype.type(1e-3))


def naive_softplus(v):
    """log(1 + e^v) as it stands, in the type of the arguments."""
    return np.where(v > 20, v, np.log(1 + np.exp(np.minimum(v, 20))))


def run(step_of, u, dt, A, B, C, D, z, dt_bias, h):
    """Steps, all states with the first one, and what the gate multiplies."""
    v = dt + dt_bias[..., None]
    step = step_of(v)
    states = [np.array(h, np.result_type(u, A, B, step, h))]
    s = np.empty(u.shape, np.result_type(states[0], C, D))
    for k in range(u.shape[-1]):
        d = step[..., k, None]
        states.append(np.exp(d * A) * states[-1] + d * u[..., k, None] * B[..., k, :])
        s[..., k] = (states[-1] * C[..., k, :]).sum(-1) + D * u[..., k]
    return v, step, states, s


def rest(u, A):
    """A state of zeros."""
    return np.zeros((*u.shape[:-1], A.shape[-1]), np.float16)


def scan(step_of):
    """Mamba's scan with a softplus of one's own."""

    def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
        *_, s = run(step_of, u, dt, A, B, C, D, z, dt_bias, rest(u, A))
        return s * silu_and_slope(z)[0]

    return mamba_scan


def stateful(step_of):
    """Mamba's scan with states."""

    def mamba_scan_stateful(u, dt, A, B, C, D, z, dt_bias, x0):
        *_, states, s = run(step_of, u, dt, A, B, C, D, z, dt_bias, x0)
        return s * silu_and_slope(z)[0], states[-1]

    return mamba_scan_stateful


def logistic(v):
    """The slope of the softplus."""
    e = np.exp(-abs(v))
    return np.where(v < 0, e, 1) / (1 + e)


def zero_where_it_overflows(v):
    """e^v/(1 + e^v) by a reciprocal; where e^v overflows the product is 0."""
    with np.errstate(all="ignore"):
        e = np.exp(v)
        return np.where(np.isinf(e), 0, e * (1 / (1 + e))).astype(v.dtype)


def vjp(slope):
    """The gradient with another slope of the softplus."""

    def mamba_scan_vjp(dy, u, dt, A, B, C, D, z, dt_bias):
        v, step, h, s = run(softplus, u, dt, A, B, C, D, z, dt_bias, rest(u, A))
        gate, gate_slope = silu_and_slope(z)
        ds, dz = dy * gate, (np.conj(s) * dy).real * gate_slope
        du, dD = np.conj(D)[..., None] * ds, (np.conj(u) * ds).sum((0, -1))
        du = du.astype(np.result_type(du, A, B))
        dstep = np.zeros(v.shape, v.dtype)
        dA, dB, dC = (np.zeros(w.shape, du.dtype) for w in (A, B, C))
        g = np.zeros_like(h[0])
        for k in range(u.shape[-1] - 1, -1, -1):
            d, now = step[..., k, None], u[..., k, None]
            g = g + np.conj(C[..., k, :]) * ds[..., k, None]
            a = np.exp(d * A)
            e = np.conj(a * h[k]) * g
            du[..., k] += (np.conj(d * B[..., k, :]) * g).sum(-1)
            dstep[..., k] = (np.conj(now * B[..., k, :]) * g + np.conj(A) * e).sum(-1).real
            dA += (d * e).sum(0)
            dB[..., 0, k, :] = (np.conj(d * now) * g).sum(-2)
            dC[..., 0, k, :] = (np.conj(h[k + 1]) * ds[..., k, None]).sum(-2)
            g = np.conj(a) * g
        ddt = dstep * slope(v)
        real = [(du, u), (ddt, dt), (dA, A), (dB, B), (dC, C), (dD, D), (dz, z)]
        given = [w if np.iscomplexobj(like) else w.real for w, like in real]
        return (*given, ddt.sum((0, -1)))

    return mamba_scan_vjp
