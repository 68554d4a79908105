"""Planted bugs in HiPPO's operators and their gradients, collected."""

from refssm.conformance.planted.hippo import fourier as hippo_fourier
from refssm.conformance.planted.hippo import laguerre as hippo_laguerre
from refssm.conformance.planted.hippo import legendre as hippo_legendre
from refssm.conformance.planted.hippo import memory as hippo_memory
from refssm.conformance.planted.hippo import reconstruct as hippo_reconstruct

DEVIATIONS = [
    *hippo_legendre.DEVIATIONS,
    *hippo_laguerre.DEVIATIONS,
    *hippo_fourier.DEVIATIONS,
    *hippo_memory.DEVIATIONS,
    *hippo_reconstruct.DEVIATIONS,
]
