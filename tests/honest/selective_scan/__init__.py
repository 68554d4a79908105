"""Honest implementations of the family `selective_scan`."""

from honest.selective_scan.programs import IMPLEMENTATIONS as IMPLEMENTATIONS
