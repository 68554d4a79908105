"""Oracles for refssm.vandermonde."""

from mpmath import mp


def vandermonde_kernel(v, x, *, l):
    """k_j = Σ_n v_n e^{x_n j}."""
    return [mp.fsum(v_n * mp.exp(x_n * j) for v_n, x_n in zip(v, x, strict=True)) for j in range(l)]


def vandermonde_kernel_real(v, x, *, l):
    """k_j = Σ_n (v_n e^{x_n j} + its conjugate)."""
    return [(k_j + k_j.conjugate()).real for k_j in vandermonde_kernel(v, x, l=l)]
