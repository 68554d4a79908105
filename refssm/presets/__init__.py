"""Presets: named systems as models start from them, for the operators that models call."""
