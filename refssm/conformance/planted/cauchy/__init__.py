"""Planted bugs of the family `cauchy`."""

from refssm.conformance.planted.cauchy.at_roots import AT_ROOTS
from refssm.conformance.planted.cauchy.kernel import KERNEL

BUGS = [*KERNEL.bugs, *AT_ROOTS.bugs]
