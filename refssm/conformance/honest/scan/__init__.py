"""Honest implementations of the family `scan`."""

from refssm.conformance.honest.scan.linear import IMPLEMENTATIONS as IMPLEMENTATIONS
