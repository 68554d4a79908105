"""Honest implementations of HiPPO's operators, collected."""

from refssm.conformance.honest import (
    hippo_fourier,
    hippo_memory,
    hippo_polynomials,
    hippo_reconstruct,
)

IMPLEMENTATIONS = [
    *hippo_polynomials.IMPLEMENTATIONS,
    *hippo_fourier.IMPLEMENTATIONS,
    *hippo_memory.IMPLEMENTATIONS,
    *hippo_reconstruct.IMPLEMENTATIONS,
]
