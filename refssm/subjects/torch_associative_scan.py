# pyright: reportMissingImports=false
"""torch._higher_order_ops.associative_scan, if this PyTorch has it: a linear scan by a tree."""

import torch
from torch._higher_order_ops.associative_scan import associative_scan

from refssm.testing import implements


def _after(first, second):
    """Two affine steps x ↦ a x + b composed to one; `first` is applied first."""
    return first[0] * second[0], first[1] * second[0] + second[1]


@implements("linear_scan", framework="torch", vjp=True)
def linear_scan(a, b):
    """associative_scan along time; combine_mode "generic" works without a GPU."""
    dtype = torch.result_type(a, b)
    a, b = torch.broadcast_tensors(a.to(dtype), b.to(dtype))
    return associative_scan(_after, (a, b), dim=a.ndim - 2, combine_mode="generic")[1]
