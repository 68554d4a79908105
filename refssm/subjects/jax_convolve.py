# pyright: reportMissingImports=false
"""jnp.convolve for one signal: a causal convolution as a direct sum."""

import jax
import jax.numpy as jnp

from refssm.testing import implements


@implements("causal_convolution_direct", framework="jax", ftz=True, vjp=True, layout="l, l -> l")
@jax.jit
def causal_convolution_direct(u, k):
    """The first l entries of the full convolution, at the highest precision."""
    return jnp.convolve(u, k, precision=jax.lax.Precision.HIGHEST)[: u.shape[0]]
