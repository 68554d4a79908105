"""Presets of recurrences that are declared by their steps alone."""
