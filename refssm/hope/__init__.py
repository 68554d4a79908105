"""HOPE: kernels of n Markov parameters on a circle that the step warps [yu2024hope]."""

from refssm.hope.aliased import (
    HOPE_KERNEL_ALIASED,
    hope_kernel_aliased,
    hope_kernel_aliased_vjp,
)
from refssm.hope.kernel import HOPE_KERNEL, hope_kernel, hope_kernel_vjp
from refssm.hope.transfer import HOPE_TRANSFER, hope_transfer, hope_transfer_vjp

__all__ = [
    "HOPE_KERNEL",
    "HOPE_KERNEL_ALIASED",
    "HOPE_TRANSFER",
    "hope_kernel",
    "hope_kernel_aliased",
    "hope_kernel_aliased_vjp",
    "hope_kernel_vjp",
    "hope_transfer",
    "hope_transfer_vjp",
]
