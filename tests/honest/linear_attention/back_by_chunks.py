"""Gradients of linear attention chunk by chunk, row by row: what cancels in a chunk cancels here.

With M_j the cotangent of u_j, R_i = β_i M_i that of z_i = v_i − Z_iᵀ k_i when all later rows are
done, and S̄ that of the state after the chunk:

    dP_ij = dy_i · u_j,    dA_ij = −R_i · u_j,    M_j = Σ_{i≥j} P_ij dy_i − Σ_{i>j} A_ij R_i + …,
    dv_i = R_i,    dβ_i = M_i · z_i.

A weight e^{G_i − G_j} that gets the cotangent h gives h e^{G_i − G_j} to each log_g_t, j < t ≤ i:
sums of these over j < t and i ≥ t, with no difference of two sums that would cancel.
"""

from typing import NamedTuple

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.contraction import einsum
from refssm.linear_attention.chunked import ByChunks, pieces_of
from refssm.linear_attention.chunks import Chunk, SeenSteps, chunk_of, row_of, started, written_of


class BackByChunks(ByChunks):
    """`run` and `back` of a recurrence, both chunk by chunk."""

    def back(self, cotangents, arguments, S0, resets, *, chunk):
        """Gradients for the arguments and S0; states before chunks are kept."""
        given, start = self._started(arguments, S0, resets)
        dy, dS = (*cotangents, np.zeros_like(start))[:2]
        pieces, states = pieces_of(given, chunk), [start]
        for piece in pieces[:-1]:
            states.append(chunk_of(piece, states[-1])[-1])
        found = []
        for i in range(len(pieces) - 1, -1, -1):
            window = dy[..., i * chunk : (i + 1) * chunk, :]
            gradients = chunk_back(pieces[i], states[i], window, dS)
            found.append(gradients)
            dS = gradients.S
        joined = [
            self._joined(name, found, x) for name, x in zip(self.names, arguments, strict=True)
        ]
        return unbroadcast_each((*joined, dS), (*arguments, start if S0 is None else S0))

    def _joined(self, name, found, argument):
        """The gradients of one argument in all chunks, last first, joined along time."""
        if not found:
            return np.zeros_like(argument)
        timed = 1 if name == "beta" or (name == "log_g" and not self.keyed) else 2
        parts = [getattr(gradients, name) for gradients in found[::-1]]
        if name == "log_g" and not self.keyed:
            parts = [part[..., 0] for part in parts]
        return np.concatenate(parts, axis=-timed)


class OfChunk(NamedTuple):
    """Cotangents of a chunk's arguments, with all leading axes, and of the state before it."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    log_g: np.ndarray
    beta: np.ndarray
    S: np.ndarray


class Sums:
    """Cotangents of u, k, log_g and S, to which each row adds."""

    def __init__(self, k, log_g, dS, width):
        self.u = np.zeros_like(k, shape=(*k.shape[:-1], width))
        self.k, self.log_g, self.S = np.zeros_like(k), np.zeros_like(log_g), dS


def chunk_back(c: Chunk, S, dy, dS) -> OfChunk:
    """Gradients from the outputs and the state after the chunk; the forward pass once more."""
    beta = c.beta
    assert beta is not None
    c, S, dy, dS = _of_every(c, S, dy, dS)
    _, u, _ = chunk_of(c, S)
    last = u.shape[-2] - 1
    row, sums = row_of(c, last), Sums(c.k, c.log_g, dS, c.v.shape[-1])
    _through_last(row, u, S, dS, sums)
    dq, dv, dbeta = [], [], []
    for i in range(last, -1, -1):
        row = row_of(c, i) if i < last else row
        dq.append(_through_row(row, c.q[..., i, :], dy[..., i, :], u[..., : i + 1, :], S, sums))
        du = sums.u[..., i, :]
        dbeta.append(einsum("...p,...p->...", du, _missing(c, row, S, u, i)))
        dv.append(beta[..., i, None] * du)
        dk = _through_row(row, c.k[..., i, :], -dv[-1], u[..., :i, :], S, sums)
        sums.k[..., i, :] += dk
    dq, dv = (np.stack(x[::-1], axis=-2) for x in (dq, dv))
    return OfChunk(dq, sums.k, dv, sums.log_g, np.stack(dbeta[::-1], axis=-1), sums.S)


def _of_every(c: Chunk, S, dy, dS):
    """k, log_g, S and the cotangents with all leading axes: rows add to arrays like these."""
    shapes = (x.shape[:-2] for x in (c.q, c.k, c.v, c.log_g, S, dy, dS))
    batch = np.broadcast_shapes(*shapes, c.resets.shape[:-1])
    kind = np.result_type(c.q, c.k, c.v, c.log_g, S, dy, dS)
    k, log_g, S, dy, dS = (
        np.broadcast_to(x, (*batch, *x.shape[-2:])).astype(kind) for x in (c.k, c.log_g, S, dy, dS)
    )
    return c._replace(k=k, log_g=log_g), S, dy, dS


def _missing(c: Chunk, row: SeenSteps, S, u, i):
    """v_i − Z_iᵀ k_i."""
    A = einsum("...jn,...n->...j", row.keys[..., :i, :], c.k[..., i, :])
    of_rows = einsum("...j,...jp->...p", A, written_of(row, u[..., :i, :]))
    return c.v[..., i, :] - einsum("...np,...n->...p", started(row, S), c.k[..., i, :]) - of_rows


def _through_row(row: SeenSteps, x, cotangent, u, S, sums: Sums):
    """The cotangent of x, which is q_i or k_i, in Sᵀ(e^{G_i} x) + Σ_j (x · e^{G_i − G_j} k_j) u_j
    over the steps of u; adds those of all else."""
    of_state = einsum("...np,...p->...n", started(row, S), cotangent)
    outer = x[..., :, None] * cotangent[..., None, :]
    sums.S = sums.S + started(row, outer)
    carried = (x * of_state)[..., None, :]
    count = u.shape[-2]
    if not count:
        _to_gates(row, carried, sums)
        return of_state
    w = slice(count)
    keys, seen = row.keys[..., w, :], row.seen[..., 1 : 1 + count, :]
    P = einsum("...jn,...n->...j", keys, x)[..., None]
    dP = einsum("...jp,...p->...j", written_of(row, u), cotangent)[..., None]
    sums.u[..., w, :] += np.where(seen, P * cotangent[..., None, :], 0)
    of_keys = np.where(seen, dP * x[..., None, :], 0)  # of e^{G_i − G_j} k_j
    sums.k[..., w, :] += row.weights[..., 1 : 1 + count, :] * of_keys
    _to_gates(row, np.concatenate([carried, keys * of_keys], axis=-2), sums)
    return of_state + einsum("...j,...jn->...n", dP[..., 0], keys)


def _through_last(row: SeenSteps, u, S, dS, sums: Sums):
    """Back through S' = e^{G_end} S + Σ_j (e^{G_end − G_j} k_j) u_jᵀ."""
    sums.S = started(row, dS)
    of_keys = einsum("...jp,...np->...jn", written_of(row, u), dS)
    sums.u += einsum("...jn,...np->...jp", row.keys, dS)
    sums.k += np.where(row.seen[..., 1:, :], row.weights[..., 1:, :] * of_keys, 0)
    carried = (started(row, S) * dS).sum(-1)[..., None, :]
    _to_gates(row, np.concatenate([carried, row.keys * of_keys], axis=-2), sums)


def _to_gates(row: SeenSteps, through, sums: Sums):
    """Add to each log_g_t the sum of `through`_j over j < t, from the state before the chunk on."""
    if sums.log_g.shape[-1] == 1:
        through = through.sum(-1)[..., None]
    count = row.keys.shape[-2]
    seen = row.seen[..., : through.shape[-2], :]
    sums.log_g[..., :count, :] += np.cumsum(np.where(seen, through, 0), axis=-2)[..., :count, :]
