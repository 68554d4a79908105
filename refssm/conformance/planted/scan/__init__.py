"""Planted bugs of the family `scan`."""

from refssm.conformance.planted.scan.linear import DEVIATIONS as DEVIATIONS
