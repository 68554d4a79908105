"""Planted bugs in the Hankel family."""
DEVIATIONS = []
