"""Test cases: chosen sizes, knobs and a seed, from which the arrays are made."""
