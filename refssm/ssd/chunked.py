"""State-space duality by chunks: attention inside them, the recurrence between them.

Inside a chunk of q steps it uses the quadratic form, which is made of matrix products; between
chunks, the state. O(l·q) operations; every q gives the same result [dao2024mamba2, §6].
"""

from refssm._declaration.operator import Operator
from refssm.domains import chunk_sizes, resets, states
from refssm.scan.blocks import no_resets
from refssm.ssd.packed import SSD_RECURRENT_PACKED
from refssm.ssd.quadratic import attended
from refssm.ssd.recurrent import (
    SSD_RECURRENT,
    SSD_RECURRENT_STATEFUL,
    at_rest,
    full_state,
    outputs_of,
)


def _by_chunks(x, log_a, B, C, S, resets, chunk):
    """All outputs, and the last state."""
    y = []
    for start in range(0, x.shape[-2], chunk):
        w = slice(start, start + chunk)
        piece = x[..., w, :], log_a[..., w], B[..., w, :], C[..., w, :]
        more, S = attended(*piece, S, resets[..., w])
        y += more
    return y, S


def _whatever_the_chunk(op: Operator):
    """The recurrence with an unused keyword `chunk`: its rounding errors define the bound."""

    def recurrence(*args, chunk):
        del chunk
        return op.reference(*args)

    return recurrence


def ssd_chunked(x, log_a, B, C, *, chunk):
    """y_t = S_t C_t,  S_t = e^{log_a_t} S_{t-1} + x_t B_tᵀ from rest, `chunk` steps at a time.

    Signature ``(l,p),(l),(l,n),(l,n)->(l,p)``: the same function as `ssd_recurrent` for every chunk
    size, which need not divide the length. Other arguments, types, units and errors are those of
    `ssd_recurrent`; ValueError if `chunk` is not an integer ≥ 1. Source: [dao2024mamba2, §6].

    >>> import refssm
    >>> one = [[1.0], [1.0], [1.0]]
    >>> refssm.ssd_chunked(one, [0.0, 0.0, 0.0], one, one, chunk=2).ravel()
    array([1., 2., 3.])
    """
    S = at_rest(x, B)
    resets = no_resets(x.shape[-2])
    y, _ = _by_chunks(x, log_a, B, C, S, resets, chunk)
    return outputs_of(y, x, log_a, B, C, S, resets)


def ssd_chunked_vjp(dy, x, log_a, B, C, *, chunk):
    """The gradients of `ssd_recurrent`, because it is the same function.

    Returns `(dx, dlog_a, dB, dC)`, shaped like the arguments.
    """
    del chunk
    return SSD_RECURRENT.bare_vjp(dy, x, log_a, B, C)


SSD_CHUNKED = Operator(
    reference=ssd_chunked,
    definition=_whatever_the_chunk(SSD_RECURRENT),
    signature=SSD_RECURRENT.signature,
    inputs=SSD_RECURRENT.inputs,
    parameters={"chunk": chunk_sizes},
    batch=SSD_RECURRENT.batch,
    traits=SSD_RECURRENT.traits | {"matrix-product"},
    citation="dao2024mamba2, §6",
    tags=(
        "ssd_minimal_discrete",
        "mamba_chunk_scan_combined",
        "ssd_minimal",
        "chunk_simple_gla",
        "ssd_chunk_scan_combined_ref",
        "Mamba-2",
    ),
)
ssd_chunked = SSD_CHUNKED.checked(ssd_chunked)
ssd_chunked_vjp = SSD_CHUNKED.checked_vjp(ssd_chunked_vjp)


def ssd_chunked_stateful(x, log_a, B, C, S0, *, chunk):
    """y_t = S_t C_t,  S_t = e^{log_a_t} S_{t-1} + x_t B_tᵀ from S_{-1} = S0, and the last state.

    Signature ``(l,p),(l),(l,n),(l,n),(p,n)->(l,p),(p,n)``: as `ssd_recurrent_stateful`, `chunk`
    steps at a time. Source: [dao2024mamba2, §6].

    >>> import refssm
    >>> refssm.ssd_chunked_stateful([[1.0]], [0.0], [[1.0]], [[2.0]], [[4.0]], chunk=64)
    (array([[10.]]), array([[5.]]))
    """
    resets = no_resets(x.shape[-2])
    y, S = _by_chunks(x, log_a, B, C, S0, resets, chunk)
    return outputs_of(y, x, log_a, B, C, S0, resets), full_state(S, x, log_a, B, C)


def ssd_chunked_stateful_vjp(dy, dS, x, log_a, B, C, S0, *, chunk):
    """The gradients of `ssd_recurrent_stateful`, because it is the same function.

    Returns `(dx, dlog_a, dB, dC, dS0)`, shaped like the arguments.
    """
    del chunk
    return SSD_RECURRENT_STATEFUL.bare_vjp(dy, dS, x, log_a, B, C, S0)


SSD_CHUNKED_STATEFUL = Operator(
    reference=ssd_chunked_stateful,
    definition=_whatever_the_chunk(SSD_RECURRENT_STATEFUL),
    signature=SSD_RECURRENT_STATEFUL.signature,
    form="stateful",
    inputs={**SSD_RECURRENT.inputs, "S0": states},
    parameters={"chunk": chunk_sizes},
    outputs=("y", "S"),
    batch=SSD_RECURRENT_STATEFUL.batch,
    traits=SSD_RECURRENT_STATEFUL.traits | {"matrix-product"},
    citation="dao2024mamba2, §6",
    tags=("ssd_minimal_discrete initial_states", "mamba_chunk_scan_combined return_final_states"),
)
ssd_chunked_stateful = SSD_CHUNKED_STATEFUL.checked(ssd_chunked_stateful)
ssd_chunked_stateful_vjp = SSD_CHUNKED_STATEFUL.checked_vjp(ssd_chunked_stateful_vjp)


def ssd_chunked_packed(x, log_a, B, C, resets, *, chunk):
    """y_t = S_t C_t,  S_t = x_t B_tᵀ where a sequence begins, `chunk` steps at a time.

    Signature ``(l,p),(l),(l,n),(l,n),(l)->(l,p)``: as `ssd_recurrent_packed`; a sequence may begin
    anywhere in a chunk. Source: [dao2024mamba2, §8.3].

    >>> import refssm
    >>> one = [[1.0], [1.0], [1.0]]
    >>> reset = [False, True, False]
    >>> refssm.ssd_chunked_packed(one, [0.0, 0.0, 0.0], one, one, reset, chunk=2).ravel()
    array([1., 1., 2.])
    """
    S = at_rest(x, B)
    y, _ = _by_chunks(x, log_a, B, C, S, resets, chunk)
    return outputs_of(y, x, log_a, B, C, S, resets)


def ssd_chunked_packed_vjp(dy, x, log_a, B, C, resets, *, chunk):
    """The gradients of `ssd_recurrent_packed`, because it is the same function.

    Returns `(dx, dlog_a, dB, dC, None)`, shaped like the arguments.
    """
    del chunk
    return SSD_RECURRENT_PACKED.bare_vjp(dy, x, log_a, B, C, resets)


SSD_CHUNKED_PACKED = Operator(
    reference=ssd_chunked_packed,
    definition=_whatever_the_chunk(SSD_RECURRENT_PACKED),
    signature=SSD_RECURRENT_PACKED.signature,
    inputs={**SSD_RECURRENT.inputs, "resets": resets},
    parameters={"chunk": chunk_sizes},
    batch=SSD_RECURRENT_PACKED.batch,
    traits=SSD_RECURRENT_PACKED.traits | {"matrix-product"},
    citation="dao2024mamba2, §8.3",
    tags=("mamba_chunk_scan_combined seq_idx", "Mamba-2 varlen"),
)
ssd_chunked_packed = SSD_CHUNKED_PACKED.checked(ssd_chunked_packed)
ssd_chunked_packed_vjp = SSD_CHUNKED_PACKED.checked_vjp(ssd_chunked_packed_vjp)
