"""Honest implementations of the family `dplr`."""

from honest.dplr import kernel, pairs

IMPLEMENTATIONS = [*kernel.IMPLEMENTATIONS, *pairs.IMPLEMENTATIONS]
