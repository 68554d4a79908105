"""Tracked arithmetic: how large the rounding errors of the reference may be, entry by entry."""
