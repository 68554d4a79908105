# pyright: reportMissingImports=false
"""Mamba-2's chunked scan in Triton's interpreter, with groups, heads, states and a first state."""

from refssm.adapters import dt_and_A
from refssm.subjects.clones import module
from refssm.subjects.triton_interpreter import SSD, few
from refssm.testing import implements

HEADS = "b l (g h) p, b l (g h), (g h), b l g n, b l g n, b (g h) p n"
ssd = module("mamba", "mamba_ssm.ops.triton.ssd_combined").mamba_chunk_scan_combined


def moderate(x):
    """The case with at most 70 steps, 2 groups of 2 heads, and chunks of 8 to 64."""
    return {**few(SSD, b=2, g=2, h=2, l=70)(x), "chunk": min(max(x["chunk"], 8), 64)}


@implements(
    "ssd_chunked_stateful",
    framework="torch",
    vjp=True,
    dtypes=("float32",),
    only=moderate,
    adapters=dt_and_A(),
    layout=f"{HEADS} -> b l (g h) p, b (g h) p n",
)
def ssd_chunked_stateful(x, dt, A, B, C, S0, *, chunk):
    """mamba_chunk_scan_combined with a first state."""
    more = {"initial_states": S0, "return_final_states": True}
    return ssd(x, dt, A, B, C, chunk, **more)
