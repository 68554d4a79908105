"""A float32 scan in JAX. XLA flushes subnormal numbers to zero on the CPU, hence ftz=True."""

import jax
import jax.numpy as jnp

from refssm.testing import implements


@implements("linear_scan", framework="jax", dtypes=("float32",), vjp=True, ftz=True)
@jax.jit
def scan(a, b):
    def step(x, inputs):
        x = inputs[0] * x + inputs[1]
        return x, x

    time_first = jnp.moveaxis(a, -2, 0), jnp.moveaxis(b, -2, 0)
    _, x = jax.lax.scan(step, jnp.zeros_like(b[..., 0, :]), time_first)
    return jnp.moveaxis(x, 0, -2)
