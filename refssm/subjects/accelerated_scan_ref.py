# pyright: reportMissingImports=false
"""accelerated_scan.ref.scan: the reference that accelerated-scan's kernels are tested against."""

import torch
from accelerated_scan.ref import scan

from refssm.testing import implements


@implements("linear_scan", framework="torch", vjp=True, layout="b n l, b n l -> b n l")
def linear_scan(a, b):
    """scan(gates, tokens) of (B, C, T) with T ≥ 2, because its tree has no level for T = 1."""
    if b.shape[-1] < 2:
        raise NotImplementedError("scan of one step: log2(1) levels")
    return scan(a.to(torch.result_type(a, b)).contiguous(), b.contiguous())
