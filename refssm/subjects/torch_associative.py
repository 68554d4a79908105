# pyright: reportMissingImports=false
"""torch._higher_order_ops.associative_scan, if this PyTorch has it: recurrences by a tree."""

import torch
from torch._higher_order_ops.associative_scan import associative_scan as by_tree

from refssm.testing import implements


def _after(first, second):
    """Two affine steps x ↦ a x + b composed to one; `first` is applied first."""
    return first[0] * second[0], first[1] * second[0] + second[1]


@implements("linear_scan", framework="torch", vjp=True)
def associative_scan(a, b):
    """associative_scan along time; combine_mode "generic" works without a GPU."""
    dtype = torch.result_type(a, b)
    a, b = torch.broadcast_tensors(a.to(dtype), b.to(dtype))
    return by_tree(_after, (a, b), dim=a.ndim - 2, combine_mode="generic")[1]


def _after_dense(first, second):
    """Two affine steps x ↦ A x + b composed to one; `first` is applied first."""
    return second[0] @ first[0], (second[0] @ first[1][..., None])[..., 0] + second[1]


@implements("dense_scan", framework="torch", vjp=True)
def dense_scan(A, b):
    """associative_scan of the affine maps of all steps, which do not commute."""
    dtype = torch.result_type(A, b)
    batch = torch.broadcast_shapes(A.shape[:-2], b.shape[:-2])
    l, n = b.shape[-2:]
    A = A.to(dtype)[..., None, :, :].expand(*batch, l, n, n)
    b = b.to(dtype).expand(*batch, l, n)
    return by_tree(_after_dense, (A, b), dim=len(batch), combine_mode="generic")[1]
