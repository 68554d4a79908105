"""Honest implementations of the family `nplr`."""

from honest.nplr.measures import IMPLEMENTATIONS as IMPLEMENTATIONS
