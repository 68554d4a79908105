# pyright: reportMissingImports=false
"""mambapy: Blelloch's scan with a hand-written gradient, and the selective scan by it."""

import torch.nn.functional as F
from mambapy.mamba import MambaBlock
from mambapy.pscan import pscan

from refssm.subjects.mamba_block import REAL, TIME_FIRST
from refssm.testing import implements


@implements("linear_scan", framework="torch", vjp=True, layout="b l n 1, b l n 1 -> b l n 1")
def linear_scan(a, b):
    """pscan(A, X) of (B, L, D, N)."""
    return pscan(a, b)


@implements("mamba_scan", vjp=True, layout=TIME_FIRST, **REAL)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """MambaBlock.selective_scan, with the softplus before it and the gate after it."""
    steps, no_block = F.softplus(dt + dt_bias), None
    y = MambaBlock.selective_scan(no_block, u, steps, A, B, C, D)  # pyright: ignore[reportArgumentType]
    return y * F.silu(z)
