"""Honest implementations of the family `dplr`."""

from refssm.conformance.honest.dplr.kernel import IMPLEMENTATIONS as IMPLEMENTATIONS
