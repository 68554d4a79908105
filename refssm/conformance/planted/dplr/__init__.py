"""Planted bugs in DPLR kernels: of all modes, and of conjugate pairs."""

from refssm.conformance.planted.dplr import kernels, pairs

BUGS = [*kernels.BUGS, *pairs.BUGS]
