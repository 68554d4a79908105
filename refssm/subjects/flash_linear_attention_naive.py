"""flash-linear-attention's naive simple GLA, with which its tests compare its kernels."""

from refssm.subjects.flash_linear_attention_shared import (
    DECLARED,
    FROM,
    LAYOUT,
    fla,
    keys,
)
from refssm.testing import implements

naive = fla("ops.simple_gla.naive")


@implements("ssd_recurrent", layout=LAYOUT, **DECLARED)
def ssd_recurrent(x, log_a, B, C):
    """naive_recurrent_simple_gla."""
    return naive.naive_recurrent_simple_gla(*keys(x, log_a, B, C), 1.0)[0].reshape(x.shape)


@implements("ssd_recurrent_stateful", layout=FROM, **DECLARED)
def ssd_recurrent_stateful(x, log_a, B, C, S0):
    """naive_recurrent_simple_gla from a state."""
    y, S = naive.naive_recurrent_simple_gla(*keys(x, log_a, B, C), 1.0, S0.flatten(1, 2).mT)
    return y.reshape(x.shape), S.mT.reshape(S0.shape)


@implements("ssd_quadratic", layout=LAYOUT, **DECLARED)
def ssd_quadratic(x, log_a, B, C):
    """naive_parallel_simple_gla."""
    return naive.naive_parallel_simple_gla(*keys(x, log_a, B, C), 1.0)[0].reshape(x.shape)


@implements("ssd_chunked", layout=LAYOUT, **DECLARED)
def ssd_chunked(x, log_a, B, C, *, chunk):
    """naive_chunk_simple_gla."""
    y, _ = naive.naive_chunk_simple_gla(*keys(x, log_a, B, C), chunk_size=chunk, scale=1.0)
    return y.reshape(x.shape)


@implements("ssd_chunked_stateful", layout=FROM, **DECLARED)
def ssd_chunked_stateful(x, log_a, B, C, S0, *, chunk):
    """naive_chunk_simple_gla from a state."""
    state = S0.flatten(1, 2).mT
    q, k, v, g = keys(x, log_a, B, C)
    y, S = naive.naive_chunk_simple_gla(q, k, v, g, state, True, chunk, 1.0)
    return y.reshape(x.shape), S.mT.reshape(S0.shape)
