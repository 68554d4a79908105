"""One chunk of a recurrence of linear attention, by rows: what `chunked` is made of.

With G the sums of log_g from the start of the chunk, S the state before it, and u_j what step j
writes (β_j times its error z_j; the value v_j where nothing is corrected),

    z_i = v_i − Sᵀ(e^{G_i} k_i) − Σ_{j<i} A_ij u_j,    A_ij = Σ_n k_in k_jn e^{G_in − G_jn},
    y_i = Sᵀ(e^{G_i} q_i) + Σ_{j≤i} P_ij u_j,          P_ij = Σ_n q_in k_jn e^{G_in − G_jn},
    S'  = e^{G_end} S + Σ_j (e^{G_end − G_j} k_j) u_jᵀ.

The first line solves (I + L) U = β (V − e^G K S), L_ij = β_i A_ij, by forward substitution. The
differences G_i − G_j are sums of the steps between j and i, never differences of two sums: these
lose their digits after one step of −1e4. A step that begins a sequence cuts the sums.

Back through the rows, with M_j the cotangent of u_j, R_i = β_i M_i that of z_i when all later rows
are done, and S̄ that of S':

    dP_ij = dy_i · u_j,    dA_ij = −R_i · u_j,    M_j = Σ_{i≥j} P_ij dy_i − Σ_{i>j} A_ij R_i + …,
    dv_i = R_i,    dβ_i = M_i · z_i.

A weight e^{G_i − G_j} that gets the cotangent h gives h e^{G_i − G_j} to each log_g_t, j < t ≤ i:
sums of these over j < t and i ≥ t, with no difference of two sums that would cancel.
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


def _started(row: SeenSteps, S):
    """e^{G_i} S, or 0."""
    # selected: avoids 0·NaN
    return np.swapaxes(row.weights[..., :1, :], -1, -2) * np.where(row.seen[..., :1, :], S, 0)


def _written(row: SeenSteps, u):
    """What the steps of the same sequence have written, of u (…, i, p)."""
    return np.where(row.seen[..., 1 : 1 + u.shape[-2], :], u, 0)


def _summed(weights, u):
    return einsum("...j,...jp->...p", weights, u)


def chunk_of(c: Chunk, S):
    """The outputs, the errors z and the writings u of all steps, and the state after the last."""
    y, z = [], []
    u = np.zeros_like(S, shape=(*S.shape[:-2], 0, S.shape[-1]))
    for i in range(c.v.shape[-2]):
        row = row_of(c, i)
        before, new = _started(row, S), c.v[..., i, :]
        if c.beta is not None:
            new = new - einsum("...np,...n->...p", before, c.k[..., i, :])
            A = einsum("...jn,...n->...j", row.keys[..., :i, :], c.k[..., i, :])
            new = new - _summed(A, _written(row, u))
            z.append(new)
            new = c.beta[..., i, None] * new
        new = np.broadcast_to(new, (*S.shape[:-2], S.shape[-1]))
        u = np.concatenate([u, new[..., None, :]], axis=-2)
        P = einsum("...jn,...n->...j", row.keys, c.q[..., i, :])
        read = einsum("...np,...n->...p", before, c.q[..., i, :])
        y.append(read + _summed(P, _written(row, u)))
    if y:
        S = before + einsum("...jn,...jp->...np", row.keys, _written(row, u))
    return y, z, u, S


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
    _, z, u, _ = chunk_of(c, S)
    last = len(z) - 1
    row, sums = row_of(c, last), Sums(c.k, c.log_g, dS, c.v.shape[-1])
    _through_last(row, u, S, dS, sums)
    dq, dv, dbeta = [], [], []
    for i in range(last, -1, -1):
        row = row_of(c, i) if i < last else row
        dq.append(_through_row(row, c.q[..., i, :], dy[..., i, :], u[..., : i + 1, :], S, sums))
        du = sums.u[..., i, :]
        dbeta.append(einsum("...p,...p->...", du, z[i]))
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


def _through_row(row: SeenSteps, x, cotangent, u, S, sums: Sums):
    """The cotangent of x, which is q_i or k_i, in Sᵀ(e^{G_i} x) + Σ_j (x · e^{G_i − G_j} k_j) u_j
    over the steps of u; adds those of all else."""
    of_state = einsum("...np,...p->...n", _started(row, S), cotangent)
    outer = x[..., :, None] * cotangent[..., None, :]
    sums.S = sums.S + _started(row, outer)
    carried = (x * of_state)[..., None, :]
    count = u.shape[-2]
    if not count:
        _to_gates(row, carried, sums)
        return of_state
    w = slice(count)
    keys, seen = row.keys[..., w, :], row.seen[..., 1 : 1 + count, :]
    P = einsum("...jn,...n->...j", keys, x)[..., None]
    dP = einsum("...jp,...p->...j", _written(row, u), cotangent)[..., None]
    sums.u[..., w, :] += np.where(seen, P * cotangent[..., None, :], 0)
    of_keys = np.where(seen, dP * x[..., None, :], 0)  # of e^{G_i − G_j} k_j
    sums.k[..., w, :] += row.weights[..., 1 : 1 + count, :] * of_keys
    _to_gates(row, np.concatenate([carried, keys * of_keys], axis=-2), sums)
    return of_state + einsum("...j,...jn->...n", dP[..., 0], keys)


def _through_last(row: SeenSteps, u, S, dS, sums: Sums):
    """Back through S' = e^{G_end} S + Σ_j (e^{G_end − G_j} k_j) u_jᵀ."""
    sums.S = _started(row, dS)
    of_keys = einsum("...jp,...np->...jn", _written(row, u), dS)
    sums.u += einsum("...jn,...np->...jp", row.keys, dS)
    sums.k += np.where(row.seen[..., 1:, :], row.weights[..., 1:, :] * of_keys, 0)
    carried = (_started(row, S) * dS).sum(-1)[..., None, :]
    _to_gates(row, np.concatenate([carried, row.keys * of_keys], axis=-2), sums)


def _to_gates(row: SeenSteps, through, sums: Sums):
    """Add to each log_g_t the sum of `through`_j over j < t, from the state before the chunk on."""
    if sums.log_g.shape[-1] == 1:
        through = through.sum(-1)[..., None]
    count = row.keys.shape[-2]
    seen = row.seen[..., : through.shape[-2], :]
    sums.log_g[..., :count, :] += np.cumsum(np.where(seen, through, 0), axis=-2)[..., :count, :]
