"""One chunk of a recurrence of linear attention, by rows: what `chunked` is made of.

With G the sums of log_g from the start of the chunk, S the state before it, and u_j what step j
writes (β_j times its error z_j; the value v_j where nothing is corrected),

    z_i = v_i − Sᵀ(e^{G_i} k_i) − Σ_{j<i} A_ij u_j,    A_ij = Σ_n k_in k_jn e^{G_in − G_jn},
    y_i = Sᵀ(e^{G_i} q_i) + Σ_{j≤i} P_ij u_j,          P_ij = Σ_n q_in k_jn e^{G_in − G_jn},
    S'  = e^{G_end} S + Σ_j (e^{G_end − G_j} k_j) u_jᵀ.

The first line solves (I + L) U = β (V − e^G K S), L_ij = β_i A_ij, by forward substitution. The
differences G_i − G_j are sums of the steps between j and i, never differences of two sums: these
lose their digits after one step of −1e4. A step that begins a sequence cuts the sums.
"""

from typing import NamedTuple

import numpy as np

from refssm._numerics.contraction import einsum


class Chunk(NamedTuple):
    """The arguments in one chunk; `log_g` is (…, c, n), or (…, c, 1) for one decay a head; without
    `beta` nothing is corrected."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    log_g: np.ndarray
    beta: np.ndarray | None
    resets: np.ndarray


class SeenSteps(NamedTuple):
    """What step i sees of the past: the state before the chunk, then steps 0 … i."""

    weights: np.ndarray  # (…, 1 + i + 1, n): e^{G_i − G_j}, 0 beyond the start of the sequence
    seen: np.ndarray  # (…, 1 + i + 1, 1): False beyond the start of the sequence
    keys: np.ndarray  # (…, i + 1, n): e^{G_i − G_j} k_j


def row_of(c: Chunk, i: int) -> SeenSteps:
    """The row of step i."""
    steps = c.log_g[..., : i + 1, :]
    sums = np.flip(np.cumsum(np.flip(steps, -2), axis=-2), -2)
    sums = np.concatenate([sums, np.zeros_like(sums[..., :1, :])], axis=-2)
    cuts = np.flip(np.cumsum(np.flip(c.resets[..., : i + 1], -1), axis=-1), -1) > 0
    seen = np.concatenate([~cuts, np.ones_like(cuts[..., :1])], axis=-1)[..., None]
    weights = np.where(seen, np.exp(np.where(seen, sums, 0)), 0)
    keys = np.where(seen[..., 1:, :], weights[..., 1:, :] * c.k[..., : i + 1, :], 0)
    return SeenSteps(weights, seen, keys)


def started(row: SeenSteps, S):
    """e^{G_i} S, or 0."""
    # selected: avoids 0·NaN
    return np.swapaxes(row.weights[..., :1, :], -1, -2) * np.where(row.seen[..., :1, :], S, 0)


def written_of(row: SeenSteps, u):
    """What the steps of the same sequence have written, of u (…, i, p)."""
    return np.where(row.seen[..., 1 : 1 + u.shape[-2], :], u, 0)


def _summed(weights, u):
    return einsum("...j,...jp->...p", weights, u)


def chunk_of(c: Chunk, S):
    """The outputs and the writings u of all steps, and the state after the last."""
    y = []
    u = np.zeros_like(S, shape=(*S.shape[:-2], 0, S.shape[-1]))
    for i in range(c.v.shape[-2]):
        row = row_of(c, i)
        before, new = started(row, S), c.v[..., i, :]
        if c.beta is not None:
            new = new - einsum("...np,...n->...p", before, c.k[..., i, :])
            A = einsum("...jn,...n->...j", row.keys[..., :i, :], c.k[..., i, :])
            new = new - _summed(A, written_of(row, u))
            new = c.beta[..., i, None] * new
        new = np.broadcast_to(new, (*S.shape[:-2], S.shape[-1]))
        u = np.concatenate([u, new[..., None, :]], axis=-2)
        P = einsum("...jn,...n->...j", row.keys, c.q[..., i, :])
        read = einsum("...np,...n->...p", before, c.q[..., i, :])
        y.append(read + _summed(P, written_of(row, u)))
    if y:
        S = before + einsum("...jn,...jp->...np", row.keys, written_of(row, u))
    return y, u, S
