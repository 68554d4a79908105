# pyright: reportMissingImports=false
"""torch._higher_order_ops.associative_scan of matrices: steps that do not commute."""

import torch
from torch._higher_order_ops.associative_scan import associative_scan

from refssm.testing import implements


def _after(first, second):
    """Two affine steps x ↦ A x + b composed to one; `first` is applied first."""
    return second[0] @ first[0], (second[0] @ first[1][..., None])[..., 0] + second[1]


@implements("dense_scan", framework="torch", vjp=True)
def dense_scan(A, b):
    """The affine maps of all steps, composed by a tree."""
    dtype = torch.result_type(A, b)
    batch = torch.broadcast_shapes(A.shape[:-2], b.shape[:-2])
    l, n = b.shape[-2:]
    A = A.to(dtype)[..., None, :, :].expand(*batch, l, n, n)
    b = b.to(dtype).expand(*batch, l, n)
    return associative_scan(_after, (A, b), dim=len(batch), combine_mode="generic")[1]
