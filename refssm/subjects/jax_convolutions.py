# pyright: reportMissingImports=false
"""JAX's convolutions: long ones by jnp.fft, short ones as a sum of shifted inputs."""

import jax
import jax.numpy as jnp

from refssm.testing import implements

DECLARED = {"framework": "jax", "ftz": True, "vjp": True}


@implements("causal_convolution", **DECLARED)
@jax.jit
def causal_convolution(u, k):
    """rfft of twice the length if both arguments are real, fft if one is complex."""
    l = u.shape[-1]
    padded = max(2 * l, 1)
    if jnp.iscomplexobj(u) or jnp.iscomplexobj(k):
        return jnp.fft.ifft(jnp.fft.fft(u, padded) * jnp.fft.fft(k, padded))[..., :l]
    return jnp.fft.irfft(jnp.fft.rfft(u, padded) * jnp.fft.rfft(k, padded), padded)[..., :l]


@implements("short_convolution", **DECLARED)
@jax.jit
def short_convolution(u, k):
    """One fused loop over the shifted inputs."""
    l, t = u.shape[-1], k.shape[-1]
    past = jnp.pad(u, [*[(0, 0)] * (u.ndim - 1), (max(t - 1, 0), 0)])
    y = jnp.zeros(jnp.broadcast_shapes(u.shape, (*k.shape[:-1], l)), jnp.result_type(u, k))
    for j in range(t):
        y += k[..., j, None] * past[..., t - 1 - j : t - 1 - j + l]
    return y
