"""Numba mirrors of refssm.dplr: Cauchy sums at every node in one pass, gradients by steps."""

from refssm.jit.dplr.aliased import dplr_kernel_aliased, dplr_kernel_aliased_vjp
from refssm.jit.dplr.kernel import dplr_kernel, dplr_kernel_vjp

__all__ = [
    "dplr_kernel",
    "dplr_kernel_aliased",
    "dplr_kernel_aliased_vjp",
    "dplr_kernel_vjp",
]
