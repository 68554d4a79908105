"""Planted bugs in delta_dplr by chunks: the triangular system, decays, what is carried."""

from types import SimpleNamespace

import numpy as np

from refssm.conformance.planted.arithmetic import bfloat16
from refssm.conformance.planted.linear_attention.low_rank.programs import given
from refssm.conformance.planted.planting import Planting
from refssm.linear_attention.delta_dplr_chunked import DELTA_DPLR_CHUNKED

EXPONENT = -1e4  # of steps that do not see each other


class ChunkWeights(SimpleNamespace):
    """The matrices of one chunk, S the state before it and v its values.

    A and B are what a reads of b and of k, P and Q what q reads of k and of b; W and R what both
    read of S; K, M and end what k, b and S are at the end.
    """


def _weights(g, S) -> ChunkWeights:
    """The matrices of a chunk."""
    G = np.cumsum(g.log_g, axis=-2)
    earlier = G - g.log_g
    steps = np.arange(G.shape[-2])
    before, upto = (steps[:, None] > steps)[..., None], (steps[:, None] >= steps)[..., None]
    m = ChunkWeights(g=g, G=G, S=S, v=g.v)
    m.reading = np.exp(np.where(before, earlier[..., None, :] - G[..., None, :, :], EXPONENT))
    m.decays = np.exp(np.where(upto, G[..., None, :] - G[..., None, :, :], EXPONENT))
    m.A, m.B = (_pairs(g.a, x, m.reading) for x in (g.b, g.k))
    m.P, m.Q = (_pairs(g.q, x, m.decays) for x in (g.k, g.b))
    m.W, m.R = np.exp(earlier) * g.a, np.exp(G) * g.q
    m.end, last = np.exp(G[..., -1, :, None]), np.exp(G[..., -1:, :] - G)
    m.K, m.M = last * g.k, last * g.b
    m.solved = _solved
    return m


def _pairs(x, y, decays):
    """Σ_n x_in y_jn D_ijn."""
    return (x[..., :, None, :] * decays * y[..., None, :, :]).sum(-1)


def _solved(A, known):
    """(I − A)⁻¹ of what is known."""
    z = [known[..., 0, :]]
    for i in range(1, known.shape[-2]):
        before = (A[..., i, None, :i] @ np.stack(np.broadcast_arrays(*z), axis=-2))[..., 0, :]
        z.append(known[..., i, :] + before)
    return np.stack(np.broadcast_arrays(*z), axis=-2)


def by_chunks(g, size: int, change):
    """The outputs, with matrices that `change(weights)` makes wrong."""
    S, y = g.S0, []
    for first in range(0, g.q.shape[-2], size):
        m = _weights(g.at(slice(first, first + size)), S)
        change(m)
        z = m.solved(m.A, m.W @ m.S + m.B @ m.v)
        y.append(m.R @ m.S + m.P @ m.v + m.Q @ z)
        S = m.end * m.S + np.swapaxes(m.K, -1, -2) @ m.v + np.swapaxes(m.M, -1, -2) @ z
    return np.concatenate(y, axis=-2) if y else np.zeros_like(g.v)


def _adapted(change):
    def program(right, *arguments, chunk):
        y = by_chunks(given(DELTA_DPLR_CHUNKED, arguments), chunk, change)
        return y.astype(np.result_type(*arguments), copy=False)

    return program


def _but(**of):
    """Some matrices replaced, each by of(weights)."""

    def change(m):
        for name, value in {name: make(m) for name, make in of.items()}.items():
            setattr(m, name, value)

    return change


def _series(terms: int):
    """I + A + A² + … in place of the inverse."""

    def solved(A, known):
        total = known
        for _ in range(terms):
            total = known + A @ total
        return total

    return _but(solved=lambda m: solved)


def _strict(X):
    return np.tril(X, -1)


CHUNKS = Planting(DELTA_DPLR_CHUNKED, "float32", _adapted)
CHUNKS.plant(
    ("system_not_solved", "Z = what is known: what steps of the chunk read of each other is lost",
     _series(0)),
    ("system_of_first_order", "(I + A) for (I − A)⁻¹", _series(1)),
    ("system_of_second_order", "(I + A + A²) for (I − A)⁻¹", _series(2)),
    ("system_sign", "(I + A)⁻¹ for (I − A)⁻¹", _but(A=lambda m: -m.A)),
    ("system_transposed", "the inverse of the transpose, of the last step first", _but(
        A=lambda m: _strict(np.swapaxes(m.A, -1, -2)[..., ::-1, ::-1]))),
    ("system_decays_of_outputs", "e^{G_i − G_j} for e^{G_{i−1} − G_j} in A", _but(
        A=lambda m: _strict(_pairs(m.g.a, m.g.b, m.decays)))),
    ("values_decays_of_outputs", "e^{G_i − G_j} for e^{G_{i−1} − G_j} in what a reads of values",
     _but(B=lambda m: _strict(_pairs(m.g.a, m.g.k, m.decays)))),
    ("system_without_decays", "A_ij = a_i · b_j, no decays between the steps",
     _but(A=lambda m: _strict(m.g.a @ np.swapaxes(m.g.b, -1, -2)))),
    ("system_of_keys", "A of a and k: b taken for k", _but(A=lambda m: m.B)),
    ("system_in_bfloat16", "A rounded to bfloat16", _but(A=lambda m: bfloat16(m.A))),
    ("values_not_read", "a does not read values of its own chunk", _but(B=lambda m: 0 * m.B)),
    ("own_value_read", "a reads the value of its own step, too",
     _but(B=lambda m: m.B + np.eye(m.B.shape[-1], dtype=m.B.dtype) * (m.g.a * m.g.k).sum(-1)[
         ..., None])),
    ("state_not_read", "a does not read the state before its chunk", _but(W=lambda m: 0 * m.W)),
    ("state_read_decayed", "e^{G_i} a for e^{G_{i−1}} a: the state before the chunk decays once "
     "more before a reads it", _but(W=lambda m: np.exp(m.G) * m.g.a)),
    ("state_read_undecayed", "a reads the state as it was before the chunk",
     _but(W=lambda m: m.g.a + 0 * m.W)),
    ("moved_not_read", "outputs without what was moved in their chunk", _but(Q=lambda m: 0 * m.Q)),
    ("moved_of_own_step_lost", "outputs without what their own step moved",
     _but(Q=lambda m: _strict(m.Q))),
    ("value_of_own_step_lost", "outputs without the value of their own step",
     _but(P=lambda m: _strict(m.P))),
    ("moved_not_carried", "the state after a chunk without what was moved in it",
     _but(M=lambda m: 0 * m.M)),
    ("moved_carried_undecayed", "what was moved does not decay up to the end of its chunk",
     _but(M=lambda m: m.g.b + 0 * m.M)),
    ("values_carried_undecayed", "values do not decay up to the end of their chunk",
     _but(K=lambda m: m.g.k + 0 * m.K)),
    ("state_carried_undecayed", "the state does not decay in a chunk",
     _but(end=lambda m: 1 + 0 * m.end)),
    ("first_chunk_only", "every chunk from rest", _but(S=lambda m: 0 * m.S)),
)  # fmt: skip
