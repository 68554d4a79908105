"""Honest implementations of the family `diagonal`."""

from honest.diagonal import kernels, pairs

IMPLEMENTATIONS = [*kernels.IMPLEMENTATIONS, *pairs.IMPLEMENTATIONS]
