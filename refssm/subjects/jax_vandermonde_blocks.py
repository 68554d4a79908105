# pyright: reportMissingImports=false
"""The real Vandermonde kernel in JAX with √l exponentials per mode, and a matrix product.

e^{x (ab + c)} = e^{x a b} e^{x c}: heads of blocks times places in them.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp

from refssm.testing import implements

LAYOUT = "d n, d n -> d l"


@implements("vandermonde_kernel_real", framework="jax", ftz=True, vjp=True, layout=LAYOUT)
@partial(jax.jit, static_argnames="l")
def vandermonde_kernel_real(v, x, *, l):
    """Blocks of about √l steps; real and imaginary parts are one product of real matrices."""
    v, x = jnp.broadcast_arrays(v, x)
    block = math.isqrt(max(l - 1, 0)) + 1
    steps = jnp.arange(block, dtype=jnp.finfo(jnp.result_type(v, x)).dtype)
    heads = v[:, None] * jnp.exp(x[:, None] * (block * steps)[:, None])  # (d, block, n)
    places = jnp.exp(x[:, None] * steps[:, None])
    heads = jnp.concatenate([heads.real, -heads.imag], -1)
    places = jnp.concatenate([places.real, places.imag], -1)
    k = jnp.einsum("dan,dbn->dab", heads, places, precision=jax.lax.Precision.HIGHEST)
    return 2 * k.reshape(len(k), -1)[:, :l]
