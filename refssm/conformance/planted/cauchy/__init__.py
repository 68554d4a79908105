"""Planted bugs of the family `cauchy`."""

from refssm.conformance.planted.cauchy.kernel import DEVIATIONS as DEVIATIONS
