"""Builders of oracles: all forms of a recurrence from one step."""
