"""Gradients of selective scans by differences of cumulative sums of dt, chunk by chunk."""

import numpy as np

from honest.selective_scan.orders import batch_of
from refssm.conformance.planted.selective_scan.right import differences


def by_differences(size):
    """The gradients, `size` steps at a time: the states before all chunks, then backwards."""

    def back(dy, dx, u, dt, A, B, C, x0, resets):
        del resets  # one sequence
        batch, l, n = batch_of(u, dt, A, B, C, x0), u.shape[-1], A.shape[-1]
        u, dt = (np.broadcast_to(a, (*batch, l)) for a in (u, dt))
        B, C = (np.broadcast_to(a, (*batch, l, n)) for a in (B, C))
        x = np.broadcast_to(x0, (*batch, n))
        windows = [slice(start, start + size) for start in range(0, l, size)]
        pieces, gradients, dA = [], [], 0
        for w in windows:
            pieces.append((u[..., w], dt[..., w], A, B[..., w, :], C[..., w, :], x))
            x = _states(*pieces[-1])[2][..., -1, :]
        for w, piece in zip(reversed(windows), reversed(pieces), strict=True):
            *told, more, dx = _pulled_back(dy[..., w], dx, *piece)
            gradients.append(told)
            dA = dA + more
        axes = (-1, -1, -2, -2)
        joined = zip(zip(*reversed(gradients), strict=True), axes, strict=True)
        du, ddt, dB, dC = (np.concatenate(parts, axis=axis) for parts, axis in joined)
        return du, ddt, dA, dB, dC, dx

    return back


def _states(u, dt, A, B, C, x0):
    """e^{A s_kj}, what enters at step j (the state before first), the states, s_kj = S_k − S_j."""
    del C
    l = dt.shape[-1]
    below = np.arange(l)[:, None] >= np.arange(-1, l)
    s = np.where(below, differences(dt), 0)
    E = np.where(below[..., None], np.exp(s[..., None] * A[..., None, None, :]), 0)
    v = np.concatenate([x0[..., None, :], (dt * u)[..., None] * B], axis=-2)
    return E, v, np.einsum("...kjn,...jn->...kn", E, v), s


def _pulled_back(dy, dx, u, dt, A, B, C, x0):
    """Gradients of u, dt, B and C in one chunk, of A, and of the state before."""
    E, v, x, s = _states(u, dt, A, B, C, x0)
    g = (C.conj() * dy[..., None]).astype(np.result_type(C, dy, E))
    g[..., -1, :] += dx
    dv = np.einsum("...kjn,...kn->...jn", E.conj(), g)
    dlog = (E * v[..., None, :, :]).conj() * g[..., :, None, :]  # of A s_kj
    ds = np.einsum("...kjn,...n->...kj", dlog, A.conj())
    dS = ds.sum(-1) - ds[..., 1:].sum(-2)
    db = dv[..., 1:, :]
    ddt = np.cumsum(dS[..., ::-1], axis=-1)[..., ::-1]
    ddt = (ddt + np.einsum("...ln,...ln->...l", (u[..., None] * B).conj(), db)).real
    du = dt * np.einsum("...ln,...ln->...l", B.conj(), db)
    dB, dC = (dt * u)[..., None].conj() * db, x.conj() * dy[..., None]
    dA = np.einsum("...kjn,...kj->...n", dlog, s)
    return du, ddt, dB, dC, dA, dv[..., 0, :]
