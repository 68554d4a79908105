# pyright: reportMissingImports=false
"""annotated-s4's dense recurrence, discretization, kernel and convolution, for tutorials."""

import jax
import jax.numpy as jnp

from refssm.subjects.clones import module
from refssm.testing import implements

s4 = module("annotated-s4", "s4.s4")
DECLARED = {"framework": "jax", "ftz": True, "vjp": True}


@implements("discretize_bilinear", layout="n n, n m,  -> n n, n m", **DECLARED)
@jax.jit
def discretize_bilinear(A, B, dt):
    """discretize(A, B, C, step)."""
    return s4.discretize(A, B, None, dt)[:2]


@implements("dense_scan_from", layout="n n, l n, n -> l n", **DECLARED)
@jax.jit
def dense_scan_from(A, b, x0):
    """scan_SSM with B̄ = C̄ = I."""
    kind = jnp.result_type(A, b, x0)
    I = jnp.eye(len(A), dtype=kind)
    return s4.scan_SSM(A, I, I, b, x0.astype(kind))[1]


@implements("causal_convolution", layout="l, l -> l", dtypes=("float32", "float64"), **DECLARED)
@jax.jit
def causal_convolution(u, k):
    """causal_convolution(u, K)."""
    return s4.causal_convolution(u, k)
