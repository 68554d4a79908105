"""Honest implementations of the family `diagonal`."""

from refssm.conformance.honest.diagonal import kernels, pairs

IMPLEMENTATIONS = [*kernels.IMPLEMENTATIONS, *pairs.IMPLEMENTATIONS]
