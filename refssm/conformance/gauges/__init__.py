"""Tracked arithmetic: bounds on the rounding error of each entry of the reference's outputs."""
