# pyright: reportMissingImports=false
"""jnp.convolve, signal by signal: a causal convolution as the sum stands."""

import jax
import jax.numpy as jnp

from refssm.testing import implements


@implements("causal_convolution_direct", framework="jax", ftz=True, vjp=True, layout="l, l -> l")
@jax.jit
def causal_convolution_direct(u, k):
    """The first l entries of the full convolution, in all the digits there are."""
    return jnp.convolve(u, k, precision=jax.lax.Precision.HIGHEST)[: u.shape[0]]
