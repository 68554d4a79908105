"""flash-linear-attention's `chunk_hgrn`: its Triton kernels in the interpreter."""

from refssm.subjects.flash_linear_attention_shared import (
    DECLARED,
    FROM,
    LAYOUT,
    fla,
    gated,
)
from refssm.subjects.triton_interpreter import SSD, few, tensors_in_loops
from refssm.testing import implements

chunk = fla("ops.hgrn.chunk")
tensors_in_loops(chunk)
# chunks have 128 steps
narrow = few(SSD, b=2, g=2, h=1, p=2, n=3)


@implements("ssd_recurrent", layout=LAYOUT, only=narrow, **DECLARED)
def ssd_recurrent(x, log_a, B, C):
    """The states are one gated recurrence for each entry of x Bᵀ."""
    return gated(chunk.chunk_hgrn, x, log_a, B, C)[0]


@implements("ssd_recurrent_stateful", layout=FROM, only=narrow, **DECLARED)
def ssd_recurrent_stateful(x, log_a, B, C, S0):
    """The same from a state."""
    return gated(chunk.chunk_hgrn, x, log_a, B, C, S0)
