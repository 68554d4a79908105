"""Honest implementations of the Hankel family."""

from refssm.conformance.honest.hankel_singular import SINGULAR

IMPLEMENTATIONS = [*SINGULAR]
