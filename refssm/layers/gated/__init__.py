"""Layers whose memory is a fixed or a gated recurrence between gates and maps of each step."""
