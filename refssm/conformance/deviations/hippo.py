"""Planted bugs in HiPPO's operators, collected."""

from refssm.conformance.deviations import hippo_fourier, hippo_laguerre, hippo_legendre

DEVIATIONS = [
    *hippo_legendre.DEVIATIONS,
    *hippo_laguerre.DEVIATIONS,
    *hippo_fourier.DEVIATIONS,
]
