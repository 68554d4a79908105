# pyright: reportMissingImports=false
"""Sums over modes in JAX, written as their formulas and left to XLA.

This is the work that the bars of `refssm bench` are about. `jax_kernels` and `jax_hope` do the
same sums as fast as we could make them in JAX.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from refssm.testing import implements

DECLARED = {"framework": "jax", "ftz": True, "vjp": True}


@implements("cauchy_kernel", layout="d n, d n, l -> d l", **DECLARED)
@jax.jit
def cauchy_kernel(v, w, z):
    """Σ_n v_n / (z_l − w_n)."""
    return (v[:, None] / (z[:, None] - w[:, None])).sum(-1)


def _roots(l, dtype):
    """The nodes, computed in double precision."""
    return jnp.asarray(np.exp(-2j * np.pi * np.arange(l) / max(l, 1)), dtype)


@implements("resolvent_at_roots", layout="d n, d n -> d l", **DECLARED)
@partial(jax.jit, static_argnames="l")
def resolvent_at_roots(v, a, *, l):
    """Σ_n v_n / (1 − a_n ω^l)."""
    z = _roots(l, jnp.result_type(v, a, jnp.complex64))
    return (v[:, None] / (1 - a[:, None] * z[:, None])).sum(-1)


@implements("hope_transfer", layout="d n, d -> d l", **DECLARED)
@partial(jax.jit, static_argnames="l")
def hope_transfer(h, dt, *, l):
    """Σ_n h_n p^{n+1} with p = (dt cos θ/2 − i sin θ/2)/(dt cos θ/2 + i sin θ/2), θ = 2πj/l."""
    half = np.pi * np.arange(l) / max(l, 1)
    cosine, sine = (jnp.asarray(f(half), dt.dtype) for f in (np.cos, np.sin))
    x = dt[:, None] * cosine
    p = (x - 1j * sine) / (x + 1j * sine)
    exponents = jnp.arange(1, h.shape[-1] + 1)[:, None]
    return (h[:, :, None] * p[:, None] ** exponents).sum(-2)
