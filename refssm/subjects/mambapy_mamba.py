# pyright: reportMissingImports=false
"""mambapy's Mamba: the selective scan by Blelloch's parallel scan."""

import torch.nn.functional as F
from mambapy.mamba import MambaBlock

from refssm.testing import implements


@implements(
    "mamba_scan",
    framework="torch",
    vjp=True,
    dtypes=("float32", "float64"),
    layout="b l d, b l d, d n, b l n, b l n, d, b l d, d -> b l d",
)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """MambaBlock.selective_scan, with the softplus before it and the gate after it."""
    steps, no_block = F.softplus(dt + dt_bias), None
    y = MambaBlock.selective_scan(no_block, u, steps, A, B, C, D)  # pyright: ignore[reportArgumentType]
    return y * F.silu(z)
