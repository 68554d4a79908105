# pyright: reportMissingImports=false
"""What stands before and after the recurrences, in JAX: a short convolution, norms with a gate."""

from functools import partial

import jax

from refssm.subjects.jax_scans import DECLARED, shifted_inputs
from refssm.testing import implements


@implements("causal_conv1d", layout="b d l, d t, d -> b d l", **DECLARED)
@jax.jit
def causal_conv1d(u, k, bias):
    """One fused loop over the shifted inputs, bias and SiLU in it."""
    return jax.nn.silu(shifted_inputs(u, k) + bias[:, None])


def _normal(x, eps, *, mean):
    squares = (x * x).mean(-1, keepdims=True) if mean else (x * x).sum(-1, keepdims=True)
    return x * jax.lax.rsqrt(squares + eps)


@implements("rms_norm_gated", **DECLARED)
@partial(jax.jit, static_argnames="eps")
def rms_norm_gated(x, z, w, *, eps):
    """The gate after the norm."""
    return w * _normal(x, eps, mean=True) * jax.nn.silu(z)


@implements("gated_rms_norm", **DECLARED)
@partial(jax.jit, static_argnames=("eps", "group"))
def gated_rms_norm(x, z, w, *, eps, group):
    """The gate before the norm, group by group."""
    s = x * jax.nn.silu(z)
    n = s.shape[-1]
    size = group or n
    if not n:
        return w * s
    return w * _normal(s.reshape(*s.shape[:-1], -1, size), eps, mean=True).reshape(s.shape)


@implements("l2_norm", **DECLARED)
@partial(jax.jit, static_argnames="eps")
def l2_norm(x, *, eps):
    """x/√(Σx² + ε)."""
    return _normal(x, eps, mean=False)
