# pyright: reportMissingImports=false
"""accelerated-scan: the reference that its kernels are tested against, and their arguments."""

from typing import Any

import torch
from accelerated_scan.ref import scan

from refssm.testing import implements

SHORTEST, LONGEST = 32, 65536  # lengths of the kernels
# how both kernels are declared; each has a file, because each can be missing
KERNEL: dict[str, Any] = {
    "framework": "torch",
    "device": "cuda",
    "vjp": True,
    "dtypes": ("float32",),
    "layout": "b n l, b n l -> b n l",
}


@implements("linear_scan", framework="torch", vjp=True, layout="b n l, b n l -> b n l")
def linear_scan(a, b):
    """ref.scan(gates, tokens) of (B, C, T) with T ≥ 2, because its tree has no level for T = 1."""
    if b.shape[-1] < 2:
        raise NotImplementedError("scan of one step: log2(1) levels")
    return scan(a.to(torch.result_type(a, b)).contiguous(), b.contiguous())


def gates_and_tokens(a, b):
    """The arguments of a kernel, (B, C, T) where T is a power of two."""
    l = b.shape[-1]
    if not SHORTEST <= l <= LONGEST or l & (l - 1):
        raise NotImplementedError("lengths are powers of two from 32 to 65536")
    return a.expand_as(b).contiguous(), b.contiguous()
