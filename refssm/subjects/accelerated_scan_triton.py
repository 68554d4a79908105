# pyright: reportMissingImports=false
"""accelerated_scan.triton.scan: a Triton kernel, with its own gradient."""

from accelerated_scan.triton import scan

from refssm.subjects.accelerated_scan import KERNEL, gates_and_tokens
from refssm.testing import implements


@implements("linear_scan", **KERNEL)
def triton_scan(a, b):
    """scan(gates, tokens) of (B, C, T), where T is a power of two."""
    return scan(*gates_and_tokens(a, b))
