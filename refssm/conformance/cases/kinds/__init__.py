"""Kinds of cases beside the usual ones: structured, presets, published sizes, ends of domains."""
