"""Oracles for refssm.convolution."""

from mpmath import mp


def causal_convolution(u, k):
    """y_i = Σ_{j≤i} k_{i−j} u_j."""
    return [mp.fdot((k[i - j], u[j]) for j in range(i + 1)) for i in range(len(u))]


causal_convolution_direct = causal_convolution
