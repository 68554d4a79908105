"""Honest implementations of the family `ssd`."""

from honest.ssd.programs import IMPLEMENTATIONS as IMPLEMENTATIONS
