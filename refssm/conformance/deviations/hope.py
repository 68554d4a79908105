"""Planted bugs in HOPE operators: collected from the files of its forms."""

DEVIATIONS = []
