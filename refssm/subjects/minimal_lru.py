# pyright: reportMissingImports=false
"""minimal-LRU: its scan, and its module LRU with the gate of its SequenceLayer."""

import jax
import jax.numpy as jnp
from flax.linen import gelu

from refssm.subjects.clones import module
from refssm.testing import implements

lru = module("minimal-LRU", "lru.model")
DECLARED = {"framework": "jax", "ftz": True, "vjp": True}


@implements("linear_scan", layout="b l n, b l n -> b l n", kinds="complex", **DECLARED)
@jax.jit
def linear_scan(a, b):
    """parallel_scan(binary_operator_diag, …)."""
    if b.shape[1] == 0:
        return jnp.zeros(b.shape, jnp.result_type(a, b))
    scanned = jax.vmap(lambda *q: lru.parallel_scan(lru.binary_operator_diag, q)[1])
    return scanned(a, b)


@implements("lru_layer", layout="b l h, n, n, n, n h, h n, h, h 2h, 2h -> b l h", **DECLARED)
@jax.jit
def lru_layer(u, log_rate, log_phase, log_gamma, B, C, D, W, b):
    """LRU, then out1(GELU(y)) σ(out2(GELU(y))) with the exact GELU."""
    weights = {"B_re": B.real, "B_im": B.imag, "C_re": C.real, "C_im": C.imag, "D": D}
    ring = {"nu_log": log_rate, "theta_log": log_phase, "gamma_log": log_gamma}
    model = lru.LRU(*B.shape)
    y = jax.vmap(lambda u: model.apply({"params": weights | ring}, u))(u)
    out1, out2 = jnp.split(gelu(y, approximate=False) @ W + b, 2, axis=-1)
    return out1 * jax.nn.sigmoid(out2)
