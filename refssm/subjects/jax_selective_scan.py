# pyright: reportMissingImports=false
"""Mamba's scan in JAX: lax.scan over blocks of steps, which the gradient computes again.

Exponentials of a block are one large operation, and only the recurrence itself goes step by step.
"""

import jax
import jax.numpy as jnp

from refssm.testing import implements

BLOCK = 16
SCANNED = "b d l, b d l, d n, b n l, b n l"
DECLARED = {"framework": "jax", "ftz": True, "vjp": True}


def _step(x, inputs):
    x = inputs[0] * x + inputs[1]
    return x, x


def _scanned(u, dt, A, B, C):
    kind, (_, _, l) = jnp.result_type(u, dt, A, B, C), u.shape
    A = A.T[:, None]  # (n, 1, d)

    @jax.checkpoint
    def block(x, inputs):
        u, dt, B, C = inputs
        decays = jnp.exp(dt[:, None] * A).astype(kind)  # (block, n, b, d)
        drives = ((dt * u)[:, None] * B).astype(kind)
        x, states = jax.lax.scan(_step, x, jnp.broadcast_arrays(decays, drives))
        return x, (states * C).sum(1)

    def blocks(a):  # time first, steps of size 0 at the end
        a = jnp.pad(a, [(0, -l % BLOCK), *[(0, 0)] * (a.ndim - 1)])
        return a.reshape(-1, BLOCK, *a.shape[1:])

    by_time = [jnp.moveaxis(a, -1, 0) for a in (u, dt)]
    by_time += [jnp.transpose(a, (2, 1, 0))[..., None] for a in (B, C)]  # (l, n, b, 1)
    shape = A.shape[0], max(len(u), len(B)), max(u.shape[1], A.shape[-1])
    _, y = jax.lax.scan(block, jnp.zeros(shape, kind), [blocks(a) for a in by_time])
    return jnp.moveaxis(y.reshape(-1, *shape[1:])[:l], 0, -1)


@implements("selective_scan", layout=f"{SCANNED} -> b d l", **DECLARED)
@jax.jit
def selective_scan(u, dt, A, B, C):
    """The scan alone."""
    return _scanned(u, dt, A, B, C)


@implements("mamba_scan", layout=f"{SCANNED}, d, b d l, d -> b d l", **DECLARED)
@jax.jit
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """The scan with bias and softplus before it, skip connection and gate after it."""
    y = _scanned(u, jax.nn.softplus(dt + dt_bias[:, None]), A, B, C)
    return (y + D[:, None] * u) * jax.nn.silu(z)
