"""Kernels of diagonal systems from their continuous parameters, and of two with none.

    K_k = Σ_n C_n Ā_n^k B̄_n,   k = 0 … l−1

`discretized` takes Ā and B̄ from zero-order hold or the bilinear map (S4D), `dss` has the two of
diagonal state spaces, `ema` is Mega's moving average, `shift` the system that only remembers.
"""

from refssm.diagonal.discretized import (
    DIAGONAL_KERNEL_BILINEAR,
    DIAGONAL_KERNEL_ZOH,
    diagonal_kernel_bilinear,
    diagonal_kernel_bilinear_vjp,
    diagonal_kernel_zoh,
    diagonal_kernel_zoh_vjp,
)
from refssm.diagonal.dss import (
    DSS_EXP_KERNEL,
    DSS_SOFTMAX_KERNEL,
    dss_exp_kernel,
    dss_exp_kernel_vjp,
    dss_softmax_kernel,
    dss_softmax_kernel_vjp,
)
from refssm.diagonal.ema import EMA_KERNEL, ema_kernel, ema_kernel_vjp
from refssm.diagonal.shift import SHIFT_KERNEL, shift_kernel, shift_kernel_vjp

__all__ = [
    "DIAGONAL_KERNEL_BILINEAR",
    "DIAGONAL_KERNEL_ZOH",
    "DSS_EXP_KERNEL",
    "DSS_SOFTMAX_KERNEL",
    "EMA_KERNEL",
    "SHIFT_KERNEL",
    "diagonal_kernel_bilinear",
    "diagonal_kernel_bilinear_vjp",
    "diagonal_kernel_zoh",
    "diagonal_kernel_zoh_vjp",
    "dss_exp_kernel",
    "dss_exp_kernel_vjp",
    "dss_softmax_kernel",
    "dss_softmax_kernel_vjp",
    "ema_kernel",
    "ema_kernel_vjp",
    "shift_kernel",
    "shift_kernel_vjp",
]
