"""Test cases: Hypothesis draws sizes, knobs and a seed, from which the arrays are made."""
