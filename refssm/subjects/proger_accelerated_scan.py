# pyright: reportMissingImports=false
"""accelerated-scan at its newest commit: a tree for any length, and its Triton kernels.

The kernels run in the interpreter, with 32 steps in a block.
"""

import torch

from refssm.subjects.clones import module
from refssm.subjects.triton_interpreter import SCAN, few, in_blocks
from refssm.testing import implements

tree = module("proger-accelerated-scan", "accelerated_scan.ref")
scalar = module("proger-accelerated-scan", "accelerated_scan.scalar")
complex_ = module("proger-accelerated-scan", "accelerated_scan.complex")
for kernels in (scalar, complex_):
    in_blocks(kernels, "forward_scan", "backward_scan", BLOCK=32)

DECLARED = {"framework": "torch", "vjp": True, "layout": "b n l, b n l -> b n l"}
SMALL = few(SCAN, b=2, n=2, l=80)


def two_steps(x):
    """The case if it has two steps or more, because the tree has no level for one."""
    return x if x["b"].shape[-2] > 1 else None


@implements("linear_scan", only=two_steps, **DECLARED)
def ref_scan(a, b):
    """ref.scan(gates, tokens) of (B, C, T)."""
    return tree.scan(a.to(torch.result_type(a, b)).contiguous(), b.contiguous())


@implements("linear_scan", dtypes=("float32", "float16"), only=SMALL, **DECLARED)
def scalar_scan(a, b):
    """scalar.scan(forget, inputs) of (B, C, T)."""
    return scalar.scan(a.contiguous(), b.contiguous())


@implements("linear_scan", dtypes=("complex64",), kinds="complex", only=SMALL, **DECLARED)
def complex_scan(a, b):
    """complex.scan(forget, inputs) of (B, C, T)."""
    return complex_.scan(a.contiguous(), b.contiguous())
