"""Planted bugs of the family `convolution`."""

from refssm.conformance.planted.convolution import activated, short, whole

BUGS = [bug for planting in whole.PLANTINGS for bug in planting.bugs]
BUGS += short.BUGS + activated.BUGS
