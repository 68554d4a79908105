# pyright: reportMissingImports=false
"""xLSTM's own backends of the mLSTM cell: all pairs of steps, one step, and chunks.

Two divide keys by √n, the chunks queries.
"""

from refssm.subjects.clones import alone
from refssm.subjects.mlstm_layouts import (
    CHUNK,
    FROM,
    OF_KEYS,
    OF_QUERIES,
    SCAN,
    STEPPED,
    TORCH,
    given,
    some,
    square,
    whole_chunks,
)
from refssm.testing import implements

backends = alone("xlstm", "xlstm/blocks/mlstm/backends.py")


def square_chunks(x):
    """The case in whole chunks, with as many values as keys."""
    x = whole_chunks(x)
    return x and square(x)


@implements("mlstm", layout=SCAN, adapters=OF_KEYS, only=some, **TORCH)
def parallel_stabilized_simple(q, k, v, i, log_f, *, eps):
    """parallel_stabilized_simple."""
    arguments = given(q, k, v, i[..., None], log_f[..., None])
    return backends.parallel_stabilized_simple(*arguments, eps=eps)


@implements("mlstm_step", layout=STEPPED, adapters=OF_KEYS, only=square, **TORCH)
def recurrent_step_stabilized_simple(q, k, v, i, log_f, S, s, m, *, eps):
    """recurrent_step_stabilized_simple, which removes an axis of its arguments in place."""
    q, k, v, *_ = given(q, k, v, i, log_f)
    q, k, v = (x[:, :, None] for x in (q, k, v))
    i, log_f, m = (x[..., None, None] for x in (i, log_f, m))
    run = backends.recurrent_step_stabilized_simple
    y, (S, s, m) = run(S, s[..., None], m, q, k, v, i, log_f, eps=eps)
    return y[:, :, 0], S, s[..., 0], m[..., 0, 0]


@implements("mlstm", layout=SCAN, adapters=OF_QUERIES, only=square_chunks, **TORCH)
def chunkwise_simple(q, k, v, i, log_f, *, eps):
    """chunkwise_simple, in chunks of 16."""
    arguments = given(q, k, v, i, log_f)
    return backends.chunkwise_simple(*arguments, chunk_size=CHUNK, eps=eps)


@implements("mlstm_stateful", layout=FROM, adapters=OF_QUERIES, only=square_chunks, **TORCH)
def chunkwise_simple_stateful(q, k, v, i, log_f, S0, s0, m0, *, eps):
    """chunkwise_simple from a state, in chunks of 16; its first m has no axis of length 1."""
    arguments = *given(q, k, v, i, log_f), S0, s0, m0, CHUNK, True
    y, (S, s, m) = backends.chunkwise_simple(*arguments, eps=eps)
    return y, S, s, m[..., 0, 0]
