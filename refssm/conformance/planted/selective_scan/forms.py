"""The eight selective scans, made from one function of (u, dt, A, B, C, x0, resets) -> (y, x).

A function that computes y_k = C_k · x_k and the last state, right or wrong, gives all operators of
the family. The parts of Mamba before and after the scan can be replaced too.
"""

import numpy as np

SELECTIVE = ("selective_scan", "selective_scan_stateful", "selective_scan_packed", "selective_step")
MAMBA = ("mamba_scan", "mamba_scan_stateful", "mamba_scan_packed", "mamba_step")


def softplus(v):
    """log(1 + e^v) by NumPy's logaddexp: max(0, v) + log1p(e^{−|v|})."""
    return np.logaddexp(v.dtype.type(0), v)


def silu(z):
    """z σ(z), using only e^{−|z|}."""
    e = np.exp(-np.abs(z))
    return np.where(z < 0, z * e, z) / (1 + e)


def gated(y, D, u, z, gate=silu):
    """(y + D u) silu(z)."""
    return (D[..., None] * u + y) * gate(z)


def biased(dt, dt_bias, soft=softplus):
    """softplus(dt + dt_bias)."""
    return soft(dt + dt_bias[..., None])


def batch_of(u, dt, A, B, C, *others):
    """The broadcast leading axes; `others` are states."""
    leads = [u.shape[:-1], dt.shape[:-1], A.shape[:-1], B.shape[:-2], C.shape[:-2]]
    return np.broadcast_shapes(*leads, *(x.shape[:-1] for x in others))


def rest(u, dt, A, B, C):
    """A zero state."""
    return np.zeros((*batch_of(u, dt, A, B, C), A.shape[-1]), np.result_type(u, dt, A, B))


def selective(core):
    """The selective scan, its forms from a state and packed, and one step."""

    def scan(u, dt, A, B, C):
        return core(u, dt, A, B, C, rest(u, dt, A, B, C), None)[0]

    def stateful(u, dt, A, B, C, x0):
        return core(u, dt, A, B, C, x0, None)

    def packed(u, dt, A, B, C, resets):
        return core(u, dt, A, B, C, rest(u, dt, A, B, C), resets)[0]

    def step(u, dt, A, B, C, x):
        alone = (u[..., None], dt[..., None], A, B[..., None, :], C[..., None, :])
        y, x = core(*alone, x, None)
        return y[..., 0], x

    return dict(zip(SELECTIVE, (scan, stateful, packed, step), strict=True))


def mamba(core, before=biased, after=gated):
    """Mamba's four: `before(dt, dt_bias)`, the scan, then `after(y, D, u, z)`."""

    def run(u, dt, A, B, C, D, z, dt_bias, x0, resets):
        y, x = core(u, before(dt, dt_bias), A, B, C, x0, resets)
        return after(y, D, u, z), x

    def scan(u, dt, A, B, C, D, z, dt_bias):
        return run(u, dt, A, B, C, D, z, dt_bias, rest(u, dt, A, B, C), None)[0]

    def stateful(u, dt, A, B, C, D, z, dt_bias, x0):
        return run(u, dt, A, B, C, D, z, dt_bias, x0, None)

    def packed(u, dt, A, B, C, D, z, dt_bias, resets):
        return run(u, dt, A, B, C, D, z, dt_bias, rest(u, dt, A, B, C), resets)[0]

    def step(u, dt, A, B, C, D, z, dt_bias, x):
        alone = (u[..., None], dt[..., None], A, B[..., None, :], C[..., None, :])
        y, x = run(*alone, D, z[..., None], dt_bias, x, None)
        return y[..., 0], x

    return dict(zip(MAMBA, (scan, stateful, packed, step), strict=True))


def family(core, before=biased, after=gated):
    """All eight operators, by name."""
    return selective(core) | mamba(core, before, after)


def sigmoid(z):
    """σ(z) by the hyperbolic tangent, where that is accurate."""
    e = np.exp(-np.abs(z))
    return np.where(z < 0, e / (1 + e), (np.tanh(z * z.dtype.type(0.5)) + 1) / 2)
