"""flash-linear-attention's `naive_recurrent_hgrn`, with which its tests compare its kernels."""

from refssm.subjects.flash_linear_attention_shared import (
    DECLARED,
    FROM,
    LAYOUT,
    few_heads,
    fla,
    gated,
)
from refssm.testing import implements

hgrn = fla("ops.hgrn.naive").naive_recurrent_hgrn


@implements("ssd_recurrent", layout=LAYOUT, only=few_heads, **DECLARED)
def ssd_recurrent(x, log_a, B, C):
    """The states are one gated recurrence for each entry of x Bᵀ."""
    return gated(hgrn, x, log_a, B, C)[0]


@implements("ssd_recurrent_stateful", layout=FROM, only=few_heads, **DECLARED)
def ssd_recurrent_stateful(x, log_a, B, C, S0):
    """The same from a state."""
    return gated(hgrn, x, log_a, B, C, S0)
