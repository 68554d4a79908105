"""Honest implementations of HiPPO's operators, collected."""

from honest.hippo import fourier as hippo_fourier
from honest.hippo import memory as hippo_memory
from honest.hippo import polynomials as hippo_polynomials
from honest.hippo import reconstruct as hippo_reconstruct
from honest.hippo import scaled as hippo_scaled

IMPLEMENTATIONS = [
    *hippo_polynomials.IMPLEMENTATIONS,
    *hippo_fourier.IMPLEMENTATIONS,
    *hippo_memory.IMPLEMENTATIONS,
    *hippo_reconstruct.IMPLEMENTATIONS,
    *hippo_scaled.IMPLEMENTATIONS,
]
