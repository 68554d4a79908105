"""Honest implementations of the family `ssd`."""

from refssm.conformance.honest.ssd.programs import IMPLEMENTATIONS as IMPLEMENTATIONS
