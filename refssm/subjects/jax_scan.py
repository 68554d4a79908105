# pyright: reportMissingImports=false
"""jax.lax.scan: a linear scan step by step, with JAX's gradient."""

import jax
import jax.numpy as jnp

from refssm.testing import implements


def _scanned(a, b, x0):
    dtype = jnp.result_type(a, b, x0)

    def step(x, inputs):
        x = inputs[0] * x + inputs[1]
        return x, x

    time_first = (jnp.moveaxis(a, -2, 0), jnp.moveaxis(b, -2, 0).astype(dtype))
    _, x = jax.lax.scan(step, x0.astype(dtype), time_first)
    return jnp.moveaxis(x, 0, -2)


@implements("linear_scan", framework="jax", ftz=True, vjp=True)
@jax.jit
def linear_scan(a, b):
    """lax.scan along time, from a zero state."""
    return _scanned(a, b, jnp.zeros_like(b[..., 0, :]))


@implements("linear_scan_from", framework="jax", ftz=True, vjp=True)
@jax.jit
def linear_scan_from(a, b, x0):
    """lax.scan along time, from x0."""
    return _scanned(a, b, x0)
