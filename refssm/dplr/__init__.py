"""Convolution kernels of diagonal plus low-rank systems, A = diag w − P Qᴴ: S4's."""

from refssm.dplr.aliased import (
    DPLR_KERNEL_ALIASED,
    dplr_kernel_aliased,
    dplr_kernel_aliased_vjp,
)
from refssm.dplr.kernel import DPLR_KERNEL, dplr_kernel, dplr_kernel_vjp

__all__ = [
    "DPLR_KERNEL",
    "DPLR_KERNEL_ALIASED",
    "dplr_kernel",
    "dplr_kernel_aliased",
    "dplr_kernel_aliased_vjp",
    "dplr_kernel_vjp",
]
