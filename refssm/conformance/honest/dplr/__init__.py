"""Honest implementations of the family `dplr`."""

from refssm.conformance.honest.dplr import kernel, pairs

IMPLEMENTATIONS = [*kernel.IMPLEMENTATIONS, *pairs.IMPLEMENTATIONS]
