# pyright: reportMissingImports=false
"""annotated-s4's kernel_DPLR of all modes, both of each conjugate pair."""

from functools import partial

import jax
import jax.numpy as jnp

from refssm.subjects.clones import module
from refssm.testing import implements

s4 = module("annotated-s4", "s4.s4")


def of_rank_1(x):
    """The case with the first column of P and Q, and at most 64 steps: each length is compiled."""
    if not x["l"] or not x["P"].shape[-1]:
        return None
    return {**x, "P": x["P"][..., :1], "Q": x["Q"][..., :1], "l": min(x["l"], 64)}


@implements(
    "dplr_kernel_aliased_real",
    framework="jax",
    ftz=True,
    vjp=True,
    kinds="complex",
    only=of_rank_1,
    layout="n, n r, n r, n, n, -> l",
)
@partial(jax.jit, static_argnames="l")
def dplr_kernel_aliased_real(w, P, Q, B, C, dt, *, l):
    """kernel_DPLR(Lambda, P, Q, B, C, step, L)."""
    w, p, q, b, c = (jnp.concatenate([x, x.conj()]) for x in (w, P[:, 0], Q[:, 0], B, C))
    return s4.kernel_DPLR(w, p, q, b, c.conj(), dt, l)
