"""delta_dplr by chunks: a triangular system inside them, the recurrence between them.

With G the sums of log_g from the start of a chunk, S the state before it and z_i = S_{i−1}ᵀ a_i,

    z_i = Sᵀ(e^{G_{i−1}} a_i) + Σ_{j<i} (B_ij v_j + A_ij z_j),
    A_ij = Σ_n a_in b_jn e^{G_{i−1,n} − G_jn},    B_ij = Σ_n a_in k_jn e^{G_{i−1,n} − G_jn},
    S_i = e^{G_i} S + Σ_{j≤i} e^{G_i − G_j} (k_j v_jᵀ + b_j z_jᵀ),    y_i = S_iᵀ q_i.

The first line is Z = (I − A)⁻¹ (e^{G⁻} a S + B V), solved by forward substitution. a reads the
state before its step decays it: exponents end one step earlier than those of the outputs.
Differences of G are sums of the steps between, never differences of two sums.
"""

import numpy as np

from refssm._numerics.broadcasting import with_batch
from refssm._numerics.contraction import einsum
from refssm.linear_attention.chunked import by_chunks
from refssm.linear_attention.chunks import Chunk, row_of, started, written_of
from refssm.linear_attention.delta_dplr import DELTA_DPLR_RULE
from refssm.scan.blocks import no_resets


def _run(arguments, S0, resets, *, chunk):
    """The outputs, and the last state if there is a first one."""
    _, k, v, *_ = arguments
    resets = no_resets(k.shape[-2]) if resets is None else resets
    shapes = [x.shape[:-2] for x in (*arguments, *([] if S0 is None else [S0]))]
    batch = np.broadcast_shapes(*shapes, resets.shape[:-1])
    kind = np.result_type(*arguments)
    S = np.zeros_like(k, shape=(k.shape[-1], v.shape[-1]), dtype=kind) if S0 is None else S0
    S = with_batch(S.astype(np.result_type(kind, S)), 2, batch)
    y = [np.zeros_like(S, shape=(*batch, 0, S.shape[-1]))]
    for first in range(0, v.shape[-2], chunk):
        w = slice(first, first + chunk)
        more, S = _of_chunk([x[..., w, :] for x in arguments], resets[..., w], S)
        y.append(np.stack(more, axis=-2))
    y = np.concatenate(y, axis=-2)
    return (y,) if S0 is None else (y, S)


def _of_chunk(arguments, resets, S):
    """The outputs of a chunk, and the state after it."""
    q, k, v, log_g, a, b = arguments
    c, y = Chunk(q, k, v, log_g, None, resets), []
    z = np.zeros_like(S, shape=(*S.shape[:-2], 0, S.shape[-1]))
    state = S, k[..., :0, :], v[..., :0, :], b[..., :0, :], z
    for i in range(v.shape[-2]):
        # selected: what a reads where a sequence begins is 0
        now = np.where(resets[..., i, None] != 0, 0, _read(state, a[..., i, :]))
        z = np.concatenate([z, now[..., None, :]], axis=-2)
        row = row_of(c, i)
        writes = np.where(row.seen[..., 1:, :], row.weights[..., 1:, :] * b[..., : i + 1, :], 0)
        values = written_of(row, v[..., : i + 1, :])
        state = started(row, S), row.keys, values, writes, written_of(row, z)
        y.append(_read(state, q[..., i, :]))
    start, keys, values, writes, moved = state
    sums = einsum("...jn,...jp->...np", keys, values) + einsum("...jn,...jp->...np", writes, moved)
    return y, start + sums


def _read(state, x):
    """Sᵀ x of a state by its parts: what is left of the first one, keys and values, b and z."""
    start, keys, values, writes, moved = state
    y = einsum("...np,...n->...p", start, x)
    for rows, columns in ((keys, values), (writes, moved)):
        weights = einsum("...jn,...n->...j", rows, x)
        y = y + einsum("...j,...jp->...p", weights, columns)
    return y


DELTA_DPLR_BY_CHUNKS = by_chunks(
    DELTA_DPLR_RULE,
    examples=(
        """
        >>> one, g, a, b = [[1.0], [1.0]], [[0.0], [0.0]], [[-1.0], [-1.0]], [[1.0], [0.5]]
        >>> refssm.delta_dplr_chunked(one, one, [[1.0], [2.0]], g, a, b, chunk=64).ravel()
        array([1. , 2.5])
        """,
        """
        >>> refssm.delta_dplr_chunked_stateful(
        ...     [[2.0]], [[1.0]], [[1.0]], [[0.0]], [[-1.0]], [[0.5]], [[4.0]], chunk=64)
        (array([[6.]]), array([[3.]]))
        """,
        """
        >>> one, g, a, b = [[1.0], [1.0]], [[0.0], [0.0]], [[-1.0], [-1.0]], [[0.5], [0.5]]
        >>> refssm.delta_dplr_chunked_packed(
        ...     one, one, one, g, a, b, [False, True], chunk=64).ravel()
        array([1., 1.])
        """,
        """
        >>> one, g, a, b = [[1.0], [1.0]], [[0.0], [0.0]], [[-1.0], [-1.0]], [[0.5], [0.5]]
        >>> y, S = refssm.delta_dplr_chunked_packed_stateful(
        ...     one, one, one, g, a, b, [[[4.0]], [[0.0]]], [1, 2], chunk=64)
        >>> y.ravel(), S.ravel()
        (array([3., 1.]), array([3., 1.]))
        """,
    ),
    tags=(
        ("chunk_rwkv7", "dplr_chunkwise", "RWKV-7 by chunks"),
        ("chunk_rwkv7 output_final_state", "RWKV-7 by chunks with the last state"),
        ("chunk_rwkv7 cu_seqlens", "RWKV-7 by chunks packed"),
        ("chunk_rwkv7 cu_seqlens initial_state",),
    ),
    citation="peng2025rwkv7, Eq. 17",
    run=_run,
)
(
    DELTA_DPLR_CHUNKED,
    DELTA_DPLR_CHUNKED_STATEFUL,
    DELTA_DPLR_CHUNKED_PACKED,
    DELTA_DPLR_CHUNKED_PACKED_STATEFUL,
) = DELTA_DPLR_BY_CHUNKS.operators
(
    (delta_dplr_chunked, delta_dplr_chunked_vjp),
    (delta_dplr_chunked_stateful, delta_dplr_chunked_stateful_vjp),
    (delta_dplr_chunked_packed, delta_dplr_chunked_packed_vjp),
    (delta_dplr_chunked_packed_stateful, delta_dplr_chunked_packed_stateful_vjp),
) = DELTA_DPLR_BY_CHUNKS.public()
