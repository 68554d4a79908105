"""Honest implementations of the family `nplr`."""

from refssm.conformance.honest.nplr.measures import IMPLEMENTATIONS as IMPLEMENTATIONS
