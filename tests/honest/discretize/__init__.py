"""Honest implementations of the family `discretize`."""

from honest.discretize.dense import IMPLEMENTATIONS as IMPLEMENTATIONS
