"""Honest implementations of the family `selective_scan`."""

from refssm.conformance.honest.selective_scan.programs import IMPLEMENTATIONS as IMPLEMENTATIONS
