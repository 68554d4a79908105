# pyright: reportMissingImports=false
"""LinOSS in JAX: `apply_linoss_im` and `apply_linoss_imex`, associative scans of small matrices."""

from functools import partial

import jax
import jax.numpy as jnp

from refssm.subjects.clones import definitions
from refssm.testing import implements

FILE, NAMES = "models/LinOSS.py", ("binary_operator", "apply_linoss_im", "apply_linoss_imex")
models = definitions("linoss", FILE, *NAMES, jax=jax, jnp=jnp)
DECLARED = {
    "framework": "jax",
    "vjp": True,
    "ftz": True,
    "layout": "n, n m, p n, n, b l m -> b l p",
    "dtypes": ("float32", "complex64"),
}


def with_steps(x):
    """The case, if it has a step: an empty scan raises."""
    return x if x["u"].shape[-2] else None


@partial(jax.jit, static_argnames="by")
def of_members(A, B, C, dt, u, by):
    """Each member of the batch alone."""
    return jax.vmap(lambda one: by(A, B, C, one, dt))(u)


@implements("linoss_im", only=with_steps, **DECLARED)
def linoss_im(A, B, C, dt, u):
    """apply_linoss_im."""
    return of_members(A, B, C, dt, u, by=models.apply_linoss_im)


@implements("linoss_imex", only=with_steps, **DECLARED)
def linoss_imex(A, B, C, dt, u):
    """apply_linoss_imex."""
    return of_members(A, B, C, dt, u, by=models.apply_linoss_imex)
