"""Oracles for refssm.cauchy."""

from mpmath import mp


def cauchy_kernel(v, w, z):
    """k_l = Σ_n v_n / (z_l − w_n)."""
    return [mp.fsum(v_n / (z_l - w_n) for v_n, w_n in zip(v, w, strict=True)) for z_l in z]
