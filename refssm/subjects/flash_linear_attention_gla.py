"""flash-linear-attention's `fused_recurrent_gla`: its Triton kernels in the interpreter."""

from refssm.subjects.flash_linear_attention_shared import (
    DECLARED,
    SELECTED,
    few_channels,
    fla,
    selected,
)
from refssm.testing import implements

gla = fla("ops.gla").fused_recurrent_gla


@implements("selective_scan", layout=f"{SELECTED} -> b d l", only=few_channels, **DECLARED)
def selective_scan(u, dt, A, B, C):
    """A channel is a head with one value, its states are keys with gates dt A."""
    return gla(*selected(u, dt, A, B, C), scale=1.0)[0][..., 0].mT


@implements(
    "selective_scan_stateful",
    layout=f"{SELECTED}, b d n -> b d l, b d n",
    only=few_channels,
    **DECLARED,
)
def selective_scan_stateful(u, dt, A, B, C, x0):
    """The same from a state."""
    q, k, v, gates = selected(u, dt, A, B, C)
    y, x = gla(q, k, v, gates, scale=1.0, initial_state=x0[..., None], output_final_state=True)
    return y[..., 0].mT, x[..., 0]
