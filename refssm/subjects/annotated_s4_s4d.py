# pyright: reportMissingImports=false
"""annotated-s4's S4D kernel, by powers of Ā; it returns Re Σ, so 2 C B is passed for C."""

from functools import partial

import jax
import numpy as np

from refssm.subjects.clones import module
from refssm.testing import implements

s4d = module("annotated-s4", "s4.s4d")


def clipped(x):
    """The case with Re w of at most −1e-4, as S4DLayer clips it."""
    w = x["w"].copy()
    w.real = np.minimum(w.real, -1e-4)
    return {**x, "w": w}


@implements(
    "diagonal_kernel_zoh_real",
    framework="jax",
    ftz=True,
    vjp=True,
    only=clipped,
    layout="n, n, n,  -> l",
)
@partial(jax.jit, static_argnames="l")
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """s4d_kernel(C, A, L, step)."""
    return s4d.s4d_kernel(2 * C * B, w, l, dt)
