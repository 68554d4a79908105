"""Honest implementations of the family `convolution`."""

from honest.convolution.causal import IMPLEMENTATIONS as IMPLEMENTATIONS
