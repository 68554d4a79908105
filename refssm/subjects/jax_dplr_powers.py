# pyright: reportMissingImports=false
"""The DPLR kernel in JAX from powers of Ā: C Ā^{ab} times Ā^c B̄, heads of blocks times places.

It needs about 2 log₂ l products of matrices per system, no transform, and no poles.
"""

from functools import partial

import jax
import jax.numpy as jnp

from refssm.subjects.jax_dplr import DECLARED, bilinear, doubled, product, rows_of
from refssm.testing import implements


def _kernel(w, P, Q, B, C, dt, l):
    E, places = bilinear(w, P, Q, B, dt)
    places, heads, block = places[None], C[None].astype(places.dtype), 1
    while block * block < l:  # E = I − Ā^block
        places = jnp.concatenate([places, places - product(places, E.T)])
        E, block = doubled(E, E), 2 * block
    while len(heads) * block < l:
        heads = jnp.concatenate([heads, heads - product(heads, E)])
        E = doubled(E, E)
    return product(heads, places.T).ravel()[:l]


@implements("dplr_kernel", **DECLARED)
@partial(jax.jit, static_argnames="l")
def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """By doubling, in the form I − Ā^m."""
    return rows_of(_kernel, w, P, Q, B, C, dt, l=l)
