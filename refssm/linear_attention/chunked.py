"""Linear attention by chunks: triangular systems inside them, the recurrence between them.

Inside a chunk of c steps all that a step does to another one is a weight in a triangular matrix;
between chunks, the state. O(l c (n + p) + l n p) operations, most of them matrix products, and
every c gives the same result [yang2024delta, §3.2]. `chunks` has the formulas.
"""

from dataclasses import dataclass, replace

import numpy as np

from refssm._declaration.recurrence import Recurrence
from refssm._numerics.broadcasting import with_batch
from refssm.domains import chunk_sizes
from refssm.linear_attention.chunks import Chunk, chunk_of
from refssm.linear_attention.delta import DELTA
from refssm.linear_attention.gated_delta import GATED_DELTA
from refssm.linear_attention.gated_linear import GATED_LINEAR
from refssm.linear_attention.kimi import KIMI
from refssm.linear_attention.sweep import gates_keys
from refssm.scan.blocks import no_resets


@dataclass(frozen=True, eq=False)
class ByChunks:
    """`run` of a recurrence with these arguments, chunk by chunk."""

    names: tuple[str, ...]
    keyed: bool = False  # whether log_g has a number for each key

    def run(self, arguments, S0, resets, *, chunk):
        """The outputs, and the last state if there is a first one."""
        given, S = self._started(arguments, S0, resets)
        y = [np.zeros_like(S, shape=(*S.shape[:-2], 0, S.shape[-1]))]
        for piece in pieces_of(given, chunk):
            more, _, S = chunk_of(piece, S)
            y.append(np.stack(more, axis=-2))
        y = np.concatenate(y, axis=-2)
        return (y,) if S0 is None else (y, S)

    def _started(self, arguments, S0, resets):
        """The arguments as one chunk, and the state before it, with all leading axes."""
        told = dict(zip(self.names, arguments, strict=True))
        q, k, v, beta = told["q"], told["k"], told["v"], told.get("beta")
        log_g = told.get("log_g", np.zeros_like(k, shape=k.shape[-2:-1]))
        log_g = log_g if self.keyed else log_g[..., None]
        resets = no_resets(k.shape[-2]) if resets is None else resets
        shapes = [x.shape[:-2] for x in (q, k, v, log_g, *([] if S0 is None else [S0]))]
        shapes += [resets.shape[:-1]] + ([] if beta is None else [beta.shape[:-1]])
        batch, kind = np.broadcast_shapes(*shapes), np.result_type(*arguments)
        if S0 is None:
            S0 = np.zeros_like(k, shape=(k.shape[-1], v.shape[-1]), dtype=kind)
        S0 = with_batch(S0.astype(np.result_type(kind, S0)), 2, batch)
        return Chunk(q, k, v, log_g, beta, resets), S0


def pieces_of(c: Chunk, size: int) -> list[Chunk]:
    """The arguments chunk by chunk."""
    pieces = []
    for first in range(0, c.v.shape[-2], size):
        w = slice(first, first + size)
        beta = None if c.beta is None else c.beta[..., w]
        q, k, v, log_g = (x[..., w, :] for x in (c.q, c.k, c.v, c.log_g))
        pieces.append(Chunk(q, k, v, log_g, beta, c.resets[..., w]))
    return pieces


_DOC = """Signature ``{signature}``: the same function as `{name}` for every chunk size, which need
    not divide the length. Other arguments, types, units and errors are those of `{name}`;
    ValueError if `chunk` is not an integer ≥ 1. Source: [{citation}].
    """
_VJP_DOC = """The gradients of `{name}`, because it is the same function."""
FORMS = "plain", "stateful", "packed", "packed_stateful"


def by_chunks(recurrence: Recurrence, examples, tags, citation: str, run=None) -> Recurrence:
    """The recurrence by chunks: forms, rounding errors and domains are those of `recurrence`."""
    first = recurrence.doc.partition(" from rest.")[0].rstrip(",")
    run = run or ByChunks(tuple(recurrence.inputs), gates_keys(recurrence.operators[0])).run
    told = {"signature": recurrence.signature, "name": recurrence.name, "citation": citation}

    def of_steps(cotangents, arguments, S0, resets, *, chunk):
        """The gradients of the recurrence: it is the same function, and by steps less cancels."""
        del chunk
        return recurrence.back(cotangents, arguments, S0, resets)

    return replace(
        recurrence,
        name=f"{recurrence.name}_chunked",
        step=None,
        run=run,
        back=of_steps,
        parameters={"chunk": chunk_sizes},
        same_as=recurrence,  # its rounding errors define the bound
        traits=recurrence.traits | {"matrix-product"},
        doc=f"{first}, `chunk` steps at a time, from rest.\n\n    {_DOC.format(**told)}",
        vjp_doc=_VJP_DOC.format(**told),
        examples=dict(zip(FORMS, examples, strict=True)),
        citation=citation,
        tags=dict(zip(FORMS, tags, strict=True)),
    )


GATED_LINEAR_CHUNKED = by_chunks(
    GATED_LINEAR,
    examples=(
        """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> refssm.gated_linear_recurrence_chunked(one, one, [[1.0], [2.0]], g, chunk=64).ravel()
        array([1., 3.])
        """,
        """
        >>> refssm.gated_linear_recurrence_chunked_stateful(
        ...     [[2.0]], [[1.0]], [[1.0]], [[0.0]], [[4.0]], chunk=64)
        (array([[10.]]), array([[5.]]))
        """,
        """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> refssm.gated_linear_recurrence_chunked_packed(
        ...     one, one, one, g, [False, True], chunk=64).ravel()
        array([1., 1.])
        """,
        """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> y, S = refssm.gated_linear_recurrence_chunked_packed_stateful(
        ...     one, one, one, g, [[[4.0]], [[0.0]]], [1, 2], chunk=64)
        >>> y.ravel(), S.ravel()
        (array([5., 1.]), array([5., 1.]))
        """,
    ),
    tags=(
        ("chunk_gla", "GLA by chunks"),
        ("chunk_gla output_final_state", "GLA by chunks with the last state"),
        ("chunk_gla cu_seqlens", "GLA by chunks packed"),
        ("chunk_gla cu_seqlens initial_state",),
    ),
    citation="yang2023gla, §4",
)
DELTA_CHUNKED = by_chunks(
    DELTA,
    examples=(
        """
        >>> one = [[1.0], [1.0]]
        >>> refssm.delta_rule_chunked(one, one, [[1.0], [2.0]], [1.0, 0.5], chunk=64).ravel()
        array([1. , 1.5])
        """,
        """
        >>> refssm.delta_rule_chunked_stateful(
        ...     [[2.0]], [[1.0]], [[1.0]], [0.5], [[4.0]], chunk=64)
        (array([[5.]]), array([[2.5]]))
        """,
        """
        >>> one = [[1.0], [1.0]]
        >>> refssm.delta_rule_chunked_packed(
        ...     one, one, one, [0.5, 0.5], [False, True], chunk=64).ravel()
        array([0.5, 0.5])
        """,
        """
        >>> one = [[1.0], [1.0]]
        >>> y, S = refssm.delta_rule_chunked_packed_stateful(
        ...     one, one, one, [0.5, 0.5], [[[4.0]], [[0.0]]], [1, 2], chunk=64)
        >>> y.ravel(), S.ravel()
        (array([2.5, 0.5]), array([2.5, 0.5]))
        """,
    ),
    tags=(
        ("chunk_delta_rule", "DeltaNet by chunks", "delta_rule_chunkwise"),
        ("chunk_delta_rule output_final_state", "DeltaNet by chunks with the last state"),
        ("chunk_delta_rule cu_seqlens", "DeltaNet by chunks packed"),
        ("chunk_delta_rule cu_seqlens initial_state",),
    ),
    citation="yang2024delta, §3.2",
)
GATED_DELTA_CHUNKED = by_chunks(
    GATED_DELTA,
    examples=(
        """
        >>> one, g = [[1.0], [1.0]], [0.0, 0.0]
        >>> v, beta = [[1.0], [2.0]], [1.0, 0.5]
        >>> refssm.gated_delta_rule_chunked(one, one, v, g, beta, chunk=64).ravel()
        array([1. , 1.5])
        """,
        """
        >>> refssm.gated_delta_rule_chunked_stateful(
        ...     [[2.0]], [[1.0]], [[1.0]], [0.0], [0.5], [[4.0]], chunk=64)
        (array([[5.]]), array([[2.5]]))
        """,
        """
        >>> one, g = [[1.0], [1.0]], [0.0, 0.0]
        >>> refssm.gated_delta_rule_chunked_packed(
        ...     one, one, one, g, [0.5, 0.5], [False, True], chunk=64).ravel()
        array([0.5, 0.5])
        """,
        """
        >>> one, g = [[1.0], [1.0]], [0.0, 0.0]
        >>> y, S = refssm.gated_delta_rule_chunked_packed_stateful(
        ...     one, one, one, g, [0.5, 0.5], [[[4.0]], [[0.0]]], [1, 2], chunk=64)
        >>> y.ravel(), S.ravel()
        (array([2.5, 0.5]), array([2.5, 0.5]))
        """,
    ),
    tags=(
        ("chunk_gated_delta_rule", "torch_chunk_gated_delta_rule", "Gated DeltaNet by chunks"),
        ("chunk_gated_delta_rule output_final_state", "blockwise_delta_rule"),
        ("chunk_gated_delta_rule cu_seqlens",),
        ("chunk_gated_delta_rule cu_seqlens initial_state",),
    ),
    citation="yang2024gated, §3.3",
)
KIMI_CHUNKED = by_chunks(
    KIMI,
    examples=(
        """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> v, beta = [[1.0], [2.0]], [1.0, 0.5]
        >>> refssm.kimi_delta_rule_chunked(one, one, v, g, beta, chunk=64).ravel()
        array([1. , 1.5])
        """,
        """
        >>> refssm.kimi_delta_rule_chunked_stateful(
        ...     [[2.0]], [[1.0]], [[1.0]], [[0.0]], [0.5], [[4.0]], chunk=64)
        (array([[5.]]), array([[2.5]]))
        """,
        """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> refssm.kimi_delta_rule_chunked_packed(
        ...     one, one, one, g, [0.5, 0.5], [False, True], chunk=64).ravel()
        array([0.5, 0.5])
        """,
        """
        >>> one, g = [[1.0], [1.0]], [[0.0], [0.0]]
        >>> y, S = refssm.kimi_delta_rule_chunked_packed_stateful(
        ...     one, one, one, g, [0.5, 0.5], [[[4.0]], [[0.0]]], [1, 2], chunk=64)
        >>> y.ravel(), S.ravel()
        (array([2.5, 0.5]), array([2.5, 0.5]))
        """,
    ),
    tags=(
        ("chunk_kda", "naive_chunk_kda", "KDA by chunks"),
        ("chunk_kda output_final_state",),
        ("chunk_kda cu_seqlens",),
        ("chunk_kda cu_seqlens initial_state",),
    ),
    citation="kimi2025linear, §3.1",
)
CHUNKED = GATED_LINEAR_CHUNKED, DELTA_CHUNKED, GATED_DELTA_CHUNKED, KIMI_CHUNKED
(
    GATED_LINEAR_RECURRENCE_CHUNKED,
    GATED_LINEAR_RECURRENCE_CHUNKED_STATEFUL,
    GATED_LINEAR_RECURRENCE_CHUNKED_PACKED,
    GATED_LINEAR_RECURRENCE_CHUNKED_PACKED_STATEFUL,
) = GATED_LINEAR_CHUNKED.operators
(
    (gated_linear_recurrence_chunked, gated_linear_recurrence_chunked_vjp),
    (gated_linear_recurrence_chunked_stateful, gated_linear_recurrence_chunked_stateful_vjp),
    (gated_linear_recurrence_chunked_packed, gated_linear_recurrence_chunked_packed_vjp),
    (
        gated_linear_recurrence_chunked_packed_stateful,
        gated_linear_recurrence_chunked_packed_stateful_vjp,
    ),
) = GATED_LINEAR_CHUNKED.public()
(
    DELTA_RULE_CHUNKED,
    DELTA_RULE_CHUNKED_STATEFUL,
    DELTA_RULE_CHUNKED_PACKED,
    DELTA_RULE_CHUNKED_PACKED_STATEFUL,
) = DELTA_CHUNKED.operators
(
    (delta_rule_chunked, delta_rule_chunked_vjp),
    (delta_rule_chunked_stateful, delta_rule_chunked_stateful_vjp),
    (delta_rule_chunked_packed, delta_rule_chunked_packed_vjp),
    (delta_rule_chunked_packed_stateful, delta_rule_chunked_packed_stateful_vjp),
) = DELTA_CHUNKED.public()
(
    GATED_DELTA_RULE_CHUNKED,
    GATED_DELTA_RULE_CHUNKED_STATEFUL,
    GATED_DELTA_RULE_CHUNKED_PACKED,
    GATED_DELTA_RULE_CHUNKED_PACKED_STATEFUL,
) = GATED_DELTA_CHUNKED.operators
(
    (gated_delta_rule_chunked, gated_delta_rule_chunked_vjp),
    (gated_delta_rule_chunked_stateful, gated_delta_rule_chunked_stateful_vjp),
    (gated_delta_rule_chunked_packed, gated_delta_rule_chunked_packed_vjp),
    (gated_delta_rule_chunked_packed_stateful, gated_delta_rule_chunked_packed_stateful_vjp),
) = GATED_DELTA_CHUNKED.public()
(
    KIMI_DELTA_RULE_CHUNKED,
    KIMI_DELTA_RULE_CHUNKED_STATEFUL,
    KIMI_DELTA_RULE_CHUNKED_PACKED,
    KIMI_DELTA_RULE_CHUNKED_PACKED_STATEFUL,
) = KIMI_CHUNKED.operators
(
    (kimi_delta_rule_chunked, kimi_delta_rule_chunked_vjp),
    (kimi_delta_rule_chunked_stateful, kimi_delta_rule_chunked_stateful_vjp),
    (kimi_delta_rule_chunked_packed, kimi_delta_rule_chunked_packed_vjp),
    (kimi_delta_rule_chunked_packed_stateful, kimi_delta_rule_chunked_packed_stateful_vjp),
) = KIMI_CHUNKED.public()
