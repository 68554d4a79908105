"""Layers of diagonal systems: DSS, stable rates, discrete S5, liquid S4; and spectral filters."""
