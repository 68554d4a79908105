"""Planted bugs of the family `convolution`."""

from refssm.conformance.planted.convolution.around import BOTH, CIRCULAR, SHIFTED
from refssm.conformance.planted.convolution.causal import DIRECT, TRANSFORM
from refssm.conformance.planted.convolution.short import BUGS as SHORT

BUGS = [bug for p in (DIRECT, TRANSFORM, CIRCULAR, BOTH, SHIFTED) for bug in p.bugs] + SHORT
