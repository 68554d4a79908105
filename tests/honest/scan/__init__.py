"""Honest implementations of the family `scan`."""

from honest.scan.linear import IMPLEMENTATIONS as IMPLEMENTATIONS
