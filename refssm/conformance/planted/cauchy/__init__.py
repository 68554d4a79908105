"""Planted bugs in Cauchy kernels and in resolvents at roots of unity."""

from refssm.conformance.planted.cauchy import roots, sums

BUGS = [*sums.BUGS, *roots.BUGS]
