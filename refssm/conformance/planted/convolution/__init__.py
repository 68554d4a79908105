"""Planted bugs of the family `convolution`."""

from refssm.conformance.planted.convolution.causal import DEVIATIONS as DEVIATIONS
