# pyright: reportMissingImports=false
"""mlstm_kernels' native PyTorch code: step by step, in chunks, and over all pairs of steps."""

from refssm.subjects import triton_interpreter  # noqa: F401  # their package imports kernels
from refssm.subjects.clones import module
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


def theirs(name: str):
    """A module of theirs; it stays, because its functions import others when they are called."""
    return module("mlstm_kernels", f"mlstm_kernels.torch.{name}", stays=True)


chunks, pairs = theirs("chunkwise.native"), theirs("parallel.native")
stable, sequence = theirs("parallel.native_stablef"), theirs("recurrent.native_sequence")
one_step = theirs("recurrent.native_step")


@implements("mlstm", layout=SCAN, only=some, **DECLARED)
def recurrent_sequence(q, k, v, i, log_f, *, eps):
    """mlstm_recurrent_sequence__native_fw."""
    run = sequence.mlstm_recurrent_sequence__native_fw
    return run(*given(q, k, v, i, log_f), eps=eps)


@implements("mlstm_stateful", layout=FROM, only=some, **DECLARED)
def recurrent_sequence_stateful(q, k, v, i, log_f, S0, s0, m0, *, eps):
    """mlstm_recurrent_sequence__native_fw from a state."""
    run = sequence.mlstm_recurrent_sequence__native_fw
    return last(run(*given(q, k, v, i, log_f), *started(S0, s0, m0), True, eps=eps))


@implements("mlstm_step", layout=STEPPED, **DECLARED)
def recurrent_step(q, k, v, i, log_f, S, s, m, *, eps):
    """mlstm_recurrent_step__native."""
    arguments = given(q, k, v, i[..., None], log_f[..., None])
    return last(one_step.mlstm_recurrent_step__native(*arguments, *started(S, s, m), eps=eps))


@implements("mlstm", layout=SCAN, only=whole_chunks, **DECLARED)
def chunkwise_autograd(q, k, v, i, log_f, *, eps):
    """mlstm_chunkwise__native_autograd, in chunks of 16."""
    run = chunks.mlstm_chunkwise__native_autograd
    return run(*given(q, k, v, i, log_f), eps=eps, chunk_size=CHUNK)


@implements("mlstm_stateful", layout=FROM, only=whole_chunks, **DECLARED)
def chunkwise_autograd_stateful(q, k, v, i, log_f, S0, s0, m0, *, eps):
    """mlstm_chunkwise__native_autograd from a state, in chunks of 16."""
    arguments = *given(q, k, v, i, log_f), *started(S0, s0, m0), True
    return last(chunks.mlstm_chunkwise__native_autograd(*arguments, eps=eps, chunk_size=CHUNK))


@implements("mlstm", layout=SCAN, only=whole_chunks, **DECLARED)
def chunkwise_custbw(q, k, v, i, log_f, *, eps):
    """mlstm_chunkwise__native_custbw, whose gradients are written by hand, in chunks of 16."""
    run = chunks.mlstm_chunkwise__native_custbw
    return run(*given(q, k, v, i, log_f), eps=eps, chunk_size=CHUNK)


@implements("mlstm_stateful", layout=FROM, only=whole_chunks, **DECLARED)
def chunkwise_custbw_stateful(q, k, v, i, log_f, S0, s0, m0, *, eps):
    """mlstm_chunkwise__native_custbw from a state, in chunks of 16."""
    arguments = *given(q, k, v, i, log_f), *started(S0, s0, m0), True
    return last(chunks.mlstm_chunkwise__native_custbw(*arguments, eps=eps, chunk_size=CHUNK))


@implements("mlstm", layout=SCAN, only=some, **DECLARED)
def parallel_autograd(q, k, v, i, log_f, *, eps):
    """mlstm_parallel__native_autograd."""
    return pairs.mlstm_parallel__native_autograd(*given(q, k, v, i, log_f), eps=eps)


@implements("mlstm", layout=SCAN, only=some, **DECLARED)
def parallel_custbw(q, k, v, i, log_f, *, eps):
    """mlstm_parallel__native_custbw, whose gradients are written by hand."""
    return pairs.mlstm_parallel__native_custbw(*given(q, k, v, i, log_f), eps=eps)


@implements("mlstm", layout=SCAN, only=some, **DECLARED)
def parallel_stablef_autograd(q, k, v, i, log_f, *, eps):
    """mlstm_parallel__native_stablef_autograd, with sums of log_f for each pair of steps."""
    return stable.mlstm_parallel__native_stablef_autograd(*given(q, k, v, i, log_f), eps=eps)


@implements("mlstm", layout=SCAN, only=some, **DECLARED)
def parallel_stablef_custbw(q, k, v, i, log_f, *, eps):
    """mlstm_parallel__native_stablef_custbw, whose gradients are written by hand."""
    return stable.mlstm_parallel__native_stablef_custbw(*given(q, k, v, i, log_f), eps=eps)
