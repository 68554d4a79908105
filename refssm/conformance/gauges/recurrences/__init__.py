"""Error rules of recurrences: oscillators, states in a scale of their own, and angles."""

from refssm.conformance.gauges.recurrences import linoss, scales, turns  # noqa: F401  # registers
