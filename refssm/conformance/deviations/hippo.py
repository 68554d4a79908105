"""Planted bugs in HiPPO's operators and their gradients, collected."""

from refssm.conformance.deviations import (
    hippo_fourier,
    hippo_laguerre,
    hippo_legendre,
    hippo_memory,
    hippo_reconstruct,
)

DEVIATIONS = [
    *hippo_legendre.DEVIATIONS,
    *hippo_laguerre.DEVIATIONS,
    *hippo_fourier.DEVIATIONS,
    *hippo_memory.DEVIATIONS,
    *hippo_reconstruct.DEVIATIONS,
]
