"""Honest implementations of the family `convolution`."""

from refssm.conformance.honest.convolution.causal import IMPLEMENTATIONS as IMPLEMENTATIONS
