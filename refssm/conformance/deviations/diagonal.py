"""Planted bugs."""

DEVIATIONS = []
