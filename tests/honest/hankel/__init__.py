"""Honest implementations of the family `hankel`."""

from honest.hankel.transfer import IMPLEMENTATIONS as IMPLEMENTATIONS
