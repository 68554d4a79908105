"""Honest implementations of the family `hankel`."""

from refssm.conformance.honest.hankel.transfer import IMPLEMENTATIONS as IMPLEMENTATIONS
