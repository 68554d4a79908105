"""Error rules of recurrences: oscillators, filters, states in a scale of their own, angles."""

from refssm.conformance.gauges.recurrences import kalman, linoss, scales, turns  # noqa: F401  # registers
