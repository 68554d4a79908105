# pyright: reportMissingImports=false
"""transformers' xLSTM without the package of kernels: its copies of the native PyTorch code."""

from transformers.models.xlstm import modeling_xlstm

from refssm.subjects.mlstm_layouts import (
    CHUNK,
    DECLARED,
    FROM,
    SCAN,
    STEPPED,
    given,
    last,
    some,
    started,
    whole_chunks,
)
from refssm.testing import implements


@implements("mlstm", layout=SCAN, only=some, **DECLARED)
def recurrent_sequence(q, k, v, i, log_f, *, eps):
    """mlstm_recurrent_sequence_native."""
    run = modeling_xlstm.mlstm_recurrent_sequence_native
    return run(*given(q, k, v, i, log_f), eps=eps)


@implements("mlstm_stateful", layout=FROM, only=some, **DECLARED)
def recurrent_sequence_stateful(q, k, v, i, log_f, S0, s0, m0, *, eps):
    """mlstm_recurrent_sequence_native from a state."""
    run = modeling_xlstm.mlstm_recurrent_sequence_native
    return last(run(*given(q, k, v, i, log_f), *started(S0, s0, m0), True, eps=eps))


@implements("mlstm_step", layout=STEPPED, **DECLARED)
def recurrent_step(q, k, v, i, log_f, S, s, m, *, eps):
    """mlstm_recurrent_step_native."""
    run = modeling_xlstm.mlstm_recurrent_step_native
    arguments = given(q, k, v, i[..., None], log_f[..., None])
    return last(run(*arguments, *started(S, s, m), eps=eps))


@implements("mlstm", layout=SCAN, only=whole_chunks, **DECLARED)
def chunkwise(q, k, v, i, log_f, *, eps):
    """mlstm_chunkwise_native_autograd, in chunks of 16."""
    run = modeling_xlstm.mlstm_chunkwise_native_autograd
    return run(*given(q, k, v, i, log_f), eps=eps, chunk_size=CHUNK)


@implements("mlstm_stateful", layout=FROM, only=whole_chunks, **DECLARED)
def chunkwise_stateful(q, k, v, i, log_f, S0, s0, m0, *, eps):
    """mlstm_chunkwise_native_autograd from a state, in chunks of 16."""
    run = modeling_xlstm.mlstm_chunkwise_native_autograd
    arguments = *given(q, k, v, i, log_f), *started(S0, s0, m0), True
    return last(run(*arguments, eps=eps, chunk_size=CHUNK))
