"""Planted bugs of the family `discretize`."""

from refssm.conformance.planted.discretize.dense import DEVIATIONS as DEVIATIONS
