# pyright: reportMissingImports=false
"""annotated-s4's Cauchy sum and K_conv."""

from functools import partial

import jax

from refssm.subjects.clones import module
from refssm.testing import implements

s4 = module("annotated-s4", "s4.s4")
DECLARED = {"framework": "jax", "ftz": True, "vjp": True}


@implements("cauchy_kernel", layout="n, n, l -> l", **DECLARED)
def cauchy_kernel(v, w, z):
    """cauchy(v, omega, lambd)."""
    return s4.cauchy(v, z, w)


def short(x):
    """The case with at most 33 steps: K_conv unrolls one power of Ā for each."""
    return {**x, "l": min(x["l"], 33)} if x["l"] else None


@implements("krylov_kernel", only=short, layout="n n, n, n -> l", **DECLARED)
@partial(jax.jit, static_argnames="l")
def krylov_kernel(A, B, C, *, l):
    """K_conv(Ab, Bb, Cb, L)."""
    return s4.K_conv(A, B[:, None], C[None], l)
