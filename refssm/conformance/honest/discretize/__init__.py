"""Honest implementations of the family `discretize`."""

from refssm.conformance.honest.discretize.dense import IMPLEMENTATIONS as IMPLEMENTATIONS
