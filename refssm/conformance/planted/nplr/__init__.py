"""Planted bugs of the family `nplr`."""

from refssm.conformance.planted.nplr.blocks import MATRIX, MODES
from refssm.conformance.planted.nplr.measures import MEASURES

BUGS = [bug for p in (*MEASURES, MATRIX, MODES) for bug in p.bugs]
