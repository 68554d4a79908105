"""Numba mirrors of refssm for the CPU, file by file; compiled when imported."""
