"""Planted bugs of the family `discretize`."""

from refssm.conformance.planted.discretize import dense, diagonal

PLANTED = [dense.ZOH, dense.BILINEAR, diagonal.ZOH, diagonal.BILINEAR, *diagonal.PLANTED.values()]
BUGS = [bug for planted in PLANTED for bug in planted.bugs]
