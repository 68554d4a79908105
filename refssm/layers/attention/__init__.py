"""Layers of heads with queries, keys and values."""
