"""s4's causal_convolution: a product with a lower triangular Toeplitz matrix, by FFT."""

from refssm.subjects.clones import module
from refssm.testing import implements

by_toeplitz = module("s4", "src.models.functional.toeplitz").causal_convolution
DECLARED = {"framework": "torch", "vjp": True, "dtypes": ("float32", "float64")}


@implements("causal_convolution", layout="b d l, d l -> b d l", **DECLARED)
def fast(u, k):
    """TriangularToeplitzMultFast."""
    return by_toeplitz(u, k)


@implements("causal_convolution", layout="b d l, d l -> b d l", **DECLARED)
def plain(u, k):
    """TriangularToeplitzMult."""
    return by_toeplitz(u, k, fast=False)
