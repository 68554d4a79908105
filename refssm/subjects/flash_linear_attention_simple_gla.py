"""flash-linear-attention's simple GLA: its Triton kernels in the interpreter."""

from refssm.subjects.flash_linear_attention_shared import (
    DECLARED,
    FROM,
    LAYOUT,
    few_heads,
    fla,
    keys,
)
from refssm.testing import implements

gla = fla("ops.simple_gla")


def power_of_two(x):
    """A smaller case with a chunk of 16, 32 or 64."""
    return {**few_heads(x), "chunk": min(max(16, 1 << (x["chunk"] - 1).bit_length()), 64)}


@implements("ssd_recurrent", layout=LAYOUT, only=few_heads, **DECLARED)
def ssd_recurrent(x, log_a, B, C):
    """fused_recurrent_simple_gla."""
    y, _ = gla.fused_recurrent_simple_gla(*keys(x, log_a, B, C), scale=1.0)
    return y.reshape(x.shape)


@implements("ssd_recurrent_stateful", layout=FROM, only=few_heads, **DECLARED)
def ssd_recurrent_stateful(x, log_a, B, C, S0):
    """fused_recurrent_simple_gla from a state."""
    state = S0.flatten(1, 2).mT
    more = {"scale": 1.0, "initial_state": state, "output_final_state": True}
    y, S = gla.fused_recurrent_simple_gla(*keys(x, log_a, B, C), **more)
    return y.reshape(x.shape), S.mT.reshape(S0.shape)


@implements("ssd_quadratic", layout=LAYOUT, only=few_heads, **DECLARED)
def ssd_quadratic(x, log_a, B, C):
    """parallel_simple_gla."""
    return gla.parallel_simple_gla(*keys(x, log_a, B, C), scale=1.0)[0].reshape(x.shape)


@implements("ssd_chunked", layout=LAYOUT, only=power_of_two, **DECLARED)
def ssd_chunked(x, log_a, B, C, *, chunk):
    """chunk_simple_gla."""
    y, _ = gla.chunk_simple_gla(*keys(x, log_a, B, C), scale=1.0, chunk_size=chunk)
    return y.reshape(x.shape)


@implements("ssd_chunked_stateful", layout=FROM, only=power_of_two, **DECLARED)
def ssd_chunked_stateful(x, log_a, B, C, S0, *, chunk):
    """chunk_simple_gla from a state."""
    state = S0.flatten(1, 2).mT
    more = {"scale": 1.0, "initial_state": state, "output_final_state": True}
    y, S = gla.chunk_simple_gla(*keys(x, log_a, B, C), **more, chunk_size=chunk)
    return y.reshape(x.shape), S.mT.reshape(S0.shape)
