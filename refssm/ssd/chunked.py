"""State-space duality by chunks: attention inside them, the recurrence between them.

Inside a chunk of q steps it uses the quadratic form, which is made of matrix products; between
chunks, the state. O(l·q) operations; every q gives the same result [dao2024mamba2, §6].
"""

from dataclasses import replace

from refssm.domains import chunk_sizes
from refssm.ssd.quadratic import attended
from refssm.ssd.recurrent import SSD, back, ended, started


def _run(arguments, S0, resets, *, chunk):
    """The outputs, chunk by chunk, and the last state if there is a first one."""
    x, log_a, B, C = arguments
    y, (start, begun) = [], started(arguments, S0, resets)
    S = start
    for first in range(0, x.shape[-2], chunk):
        w = slice(first, first + chunk)
        piece = x[..., w, :], log_a[..., w], B[..., w, :], C[..., w, :]
        more, S = attended(*piece, S, begun[..., w])
        y += more
    return ended(y, S, arguments, S0, start, begun)


def _back(cotangents, arguments, S0, resets, *, chunk):
    """The gradients of the recurrence, because it is the same function."""
    del chunk
    return back(cotangents, arguments, S0, resets)


CHUNKED = replace(
    SSD,
    name="ssd_chunked",
    step=None,
    run=_run,
    back=_back,
    parameters={"chunk": chunk_sizes},
    same_as=SSD,  # its rounding errors define the bound
    traits=SSD.traits | {"matrix-product"},
    doc="""y_t = S_t C_t,  S_t = e^{log_a_t} S_{t-1} + x_t B_tᵀ, `chunk` steps at a time, from rest.

    Signature ``(l,p),(l),(l,n),(l,n)->(l,p)``: the same function as `ssd_recurrent` for every chunk
    size, which need not divide the length. Other arguments, types, units and errors are those of
    `ssd_recurrent`; ValueError if `chunk` is not an integer ≥ 1. Source: [dao2024mamba2, §6].
    """,
    vjp_doc="""The gradients of `ssd_recurrent`, because it is the same function.""",
    examples={
        "plain": """
        >>> one = [[1.0], [1.0], [1.0]]
        >>> refssm.ssd_chunked(one, [0.0, 0.0, 0.0], one, one, chunk=2).ravel()
        array([1., 2., 3.])
        """,
        "stateful": """
        >>> refssm.ssd_chunked_stateful([[1.0]], [0.0], [[1.0]], [[2.0]], [[4.0]], chunk=64)
        (array([[10.]]), array([[5.]]))
        """,
        "packed": """
        >>> one = [[1.0], [1.0], [1.0]]
        >>> reset = [False, True, False]
        >>> refssm.ssd_chunked_packed(one, [0.0, 0.0, 0.0], one, one, reset, chunk=2).ravel()
        array([1., 1., 2.])
        """,
        "packed_stateful": """
        >>> one = [[1.0], [1.0]]
        >>> y, S = refssm.ssd_chunked_packed_stateful(
        ...     one, [0.0, 0.0], one, one, [[[4.0]], [[0.0]]], [1, 2], chunk=2)
        >>> y.ravel(), S.ravel()
        (array([5., 1.]), array([5., 1.]))
        """,
        "states": """
        >>> one = [[1.0], [1.0]]
        >>> y, S = refssm.ssd_chunked_states(one, [0.0, 0.0], one, one, [[4.0]], [0, 1], chunk=2)
        >>> S.ravel()
        array([4., 5.])
        """,
    },
    citation="dao2024mamba2, §6",
    tags={
        "plain": (
            "ssd_minimal_discrete",
            "ssd_minimal",
            "chunk_simple_gla",
            "ssd_chunk_scan_combined_ref",
            "Mamba-2 chunk scan without softplus and gate",
        ),
        "stateful": ("ssd_minimal_discrete initial_states",),
        "packed": ("ssd chunks with seq_idx", "ssd varlen"),
        "packed_stateful": ("ssd varlen with initial states",),
        "states": ("ssd states at places", "ssd intermediate states"),
    },
)
(
    SSD_CHUNKED,
    SSD_CHUNKED_STATEFUL,
    SSD_CHUNKED_PACKED,
    SSD_CHUNKED_PACKED_STATEFUL,
    SSD_CHUNKED_STATES,
) = CHUNKED.operators
(
    (ssd_chunked, ssd_chunked_vjp),
    (ssd_chunked_stateful, ssd_chunked_stateful_vjp),
    (ssd_chunked_packed, ssd_chunked_packed_vjp),
    (ssd_chunked_packed_stateful, ssd_chunked_packed_stateful_vjp),
    (ssd_chunked_states, ssd_chunked_states_vjp),
) = CHUNKED.public()
