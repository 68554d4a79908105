"""Honest implementations of the family `diagonal`."""

from refssm.conformance.honest.diagonal.kernels import IMPLEMENTATIONS as IMPLEMENTATIONS
