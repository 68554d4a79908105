# pyright: reportMissingImports=false
"""annotated-s4's DSS-softmax kernel; it returns the real part, so it is called for C and −iC."""

from functools import partial

import jax
import jax.numpy as jnp

from refssm.subjects.clones import module
from refssm.testing import implements

dss = module("annotated-s4", "s4.dss")


@implements("dss_softmax_kernel", framework="jax", ftz=True, vjp=True, layout="n, n,  -> l")
@partial(jax.jit, static_argnames="l")
def dss_softmax_kernel(w, C, dt, *, l):
    """dss_kernel(W, Lambda, L, step)."""
    real = dss.dss_kernel(C[None], w, l, dt)
    if not jnp.iscomplexobj(w) and not jnp.iscomplexobj(C):
        return real
    return real + 1j * dss.dss_kernel(-1j * C[None], w, l, dt)
