"""Planted bugs of the family `nplr`."""

from refssm.conformance.planted.nplr.measures import DEVIATIONS as DEVIATIONS
