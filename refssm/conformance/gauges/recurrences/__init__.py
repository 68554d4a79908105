"""Error rules of recurrences: oscillators, and states in a scale of their own."""

from refssm.conformance.gauges.recurrences import linoss, scales  # noqa: F401  # registers them
