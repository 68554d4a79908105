# pyright: reportMissingImports=false
"""mamba-minimal's `MambaBlock.selective_scan`: a loop over time in PyTorch."""

import torch.nn.functional as F

from refssm.subjects.clones import module
from refssm.testing import implements

MambaBlock = module("mamba-minimal", "model").MambaBlock


@implements(
    "mamba_scan",
    framework="torch",
    vjp=True,
    dtypes=("float32", "float64"),
    layout="b l d, b l d, d n, b l n, b l n, d, b l d, d -> b l d",
)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """MambaBlock.selective_scan, with the softplus before it and the gate after it."""
    no_block = None
    y = MambaBlock.selective_scan(no_block, u, F.softplus(dt + dt_bias), A, B, C, D)
    return y * F.silu(z)
