# pyright: reportMissingImports=false
"""accelerated_scan.warp.scan: a CUDA kernel of warps, with its own gradient."""

from accelerated_scan.warp import scan

from refssm.subjects.accelerated_scan import KERNEL, gates_and_tokens
from refssm.testing import implements


@implements("linear_scan", **KERNEL)
def warp_scan(a, b):
    """scan(gates, tokens) of (B, C, T), where T is a power of two."""
    return scan(*gates_and_tokens(a, b))
