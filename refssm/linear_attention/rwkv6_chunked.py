"""RWKV-6 by chunks: those of gated linear attention, whose queries come one step late.

In a chunk with the state S before it and the sums G of log_w from its start,

    y_i = Sᵀ(e^{G_{i-1}} r_i) + Σ_{j<i} P_ij v_j + (Σ_n r_in u_n k_in) v_i,
    P_ij = Σ_n r_in k_jn e^{G_{i-1,n} − G_jn}.

The decay of step i is in none of its weights, and its own weight is that of the bonus.
"""

from refssm.linear_attention.chunked import ByChunks, by_chunks
from refssm.linear_attention.gated_linear import GATED_LINEAR
from refssm.linear_attention.reads_first import ReadsFirst
from refssm.linear_attention.rwkv6 import RWKV6_RECURRENCE

_FIRST = ReadsFirst(ByChunks(tuple(GATED_LINEAR.inputs), keyed=True).run, GATED_LINEAR.back)


def _run(arguments, S0, resets, *, chunk):
    """The outputs, and the last state if there is a first one."""
    return _FIRST.run(arguments, S0, resets, chunk=chunk)


RWKV6_BY_CHUNKS = by_chunks(
    RWKV6_RECURRENCE,
    examples=(
        """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> refssm.rwkv6_chunked(one, one, [[1.0], [2.0]], g, [0.5], chunk=64).ravel()
        array([0.5, 2. ])
        """,
        """
        >>> refssm.rwkv6_chunked_stateful(
        ...     [[2.0]], [[1.0]], [[1.0]], [[0.0]], [0.5], [[4.0]], chunk=64)
        (array([[9.]]), array([[5.]]))
        """,
        """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> refssm.rwkv6_chunked_packed(one, one, one, g, [0.5], [False, True], chunk=64).ravel()
        array([0.5, 0.5])
        """,
        """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> y, S = refssm.rwkv6_chunked_packed_stateful(
        ...     one, one, one, g, [0.5], [[[4.0]], [[0.0]]], [1, 2], chunk=64)
        >>> y.ravel(), S.ravel()
        (array([4.5, 0.5]), array([5., 1.]))
        """,
    ),
    tags=(
        ("chunk_rwkv6", "naive_chunk_rwkv6", "RWKV6 by chunks"),
        ("chunk_rwkv6 output_final_state", "RWKV6 by chunks with the last state"),
        ("chunk_rwkv6 cu_seqlens", "RWKV6 by chunks packed"),
        ("chunk_rwkv6 cu_seqlens initial_state",),
    ),
    citation="yang2023gla, §4",
    run=_run,
)
(
    RWKV6_CHUNKED,
    RWKV6_CHUNKED_STATEFUL,
    RWKV6_CHUNKED_PACKED,
    RWKV6_CHUNKED_PACKED_STATEFUL,
) = RWKV6_BY_CHUNKS.operators
(
    (rwkv6_chunked, rwkv6_chunked_vjp),
    (rwkv6_chunked_stateful, rwkv6_chunked_stateful_vjp),
    (rwkv6_chunked_packed, rwkv6_chunked_packed_vjp),
    (rwkv6_chunked_packed_stateful, rwkv6_chunked_packed_stateful_vjp),
) = RWKV6_BY_CHUNKS.public()
