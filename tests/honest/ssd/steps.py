"""Honest single steps of state-space duality."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each


def transposed(x, log_a, B, C, S):
    """The state as (n, p); y by a matrix product."""
    S = B[..., :, None] * x[..., None, :] + np.swapaxes(S, -1, -2) * np.exp(log_a)[..., None, None]
    return (C[..., None, :] @ S)[..., 0, :], np.swapaxes(S, -1, -2).copy()


def row_by_row(x, log_a, B, C, S):
    """A loop over the entries of the head."""
    S = [np.exp(log_a)[..., None] * S[..., p, :] + x[..., p, None] * B for p in range(x.shape[-1])]
    y = [np.einsum("...n,...n->...", s, C) for s in S]
    return np.stack(np.broadcast_arrays(*y), axis=-1), np.stack(S, axis=-2)


def read_first(x, log_a, B, C, S):
    """y = e^{log_a} (S C) + x (B·C), as for a chunk of one step."""
    a = np.exp(log_a)
    y = a[..., None] * (S @ C[..., None])[..., 0] + x * (B * C).sum(-1)[..., None]
    return y, np.einsum("...,...pn->...pn", a, S) + np.einsum("...p,...n->...pn", x, B)


def read_first_vjp(dy, dS_next, x, log_a, B, C, S):
    """The gradients of `read_first` term by term, plus those through the new state."""
    a, BC = np.exp(log_a), (B * C).sum(-1)
    dBC = (dy * x.conj()).sum(-1)[..., None]
    da = ((dy[..., None, :] @ S.conj())[..., 0, :] * C.conj()).sum(-1)
    da = da + (S.conj() * dS_next).sum((-2, -1))
    dx = dy * BC.conj()[..., None] + (dS_next @ B.conj()[..., None])[..., 0]
    dB = dBC * C.conj() + (x.conj()[..., None, :] @ dS_next)[..., 0, :]
    ady = a.conj()[..., None] * dy
    dC = dBC * B.conj() + (ady[..., None, :] @ S.conj())[..., 0, :]
    dS = ady[..., :, None] * C.conj()[..., None, :] + a.conj()[..., None, None] * dS_next
    return unbroadcast_each((dx, a.conj() * da, dB, dC, dS), (x, log_a, B, C, S))
