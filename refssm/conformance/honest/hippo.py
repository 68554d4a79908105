"""Honest implementations of HiPPO's operators, collected."""

from refssm.conformance.honest import hippo_fourier, hippo_polynomials

IMPLEMENTATIONS = [*hippo_polynomials.IMPLEMENTATIONS, *hippo_fourier.IMPLEMENTATIONS]
