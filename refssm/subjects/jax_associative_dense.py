# pyright: reportMissingImports=false
"""jax.lax.associative_scan of matrices: steps that do not commute.

XLA flushes subnormal numbers to zero on the CPU: `ftz=True`.
"""

import jax
import jax.numpy as jnp

from refssm.testing import implements


def _after(first, second):
    """Two affine steps x ↦ A x + b composed to one; `first` is applied first."""
    A, b = second
    A_first, b_first = first
    exact = jax.lax.Precision.HIGHEST
    carried = jnp.matmul(A, b_first[..., None], precision=exact)[..., 0]
    return jnp.matmul(A, A_first, precision=exact), carried + b


@implements("dense_scan", framework="jax", ftz=True, vjp=True)
@jax.jit
def dense_scan(A, b):
    """The affine maps of all steps, composed by a tree."""
    dtype = jnp.result_type(A, b)
    batch = jnp.broadcast_shapes(A.shape[:-2], b.shape[:-2])
    l, n = b.shape[-2:]
    A = jnp.broadcast_to(A.astype(dtype)[..., None, :, :], (*batch, l, n, n))
    b = jnp.broadcast_to(b.astype(dtype), (*batch, l, n))
    return jax.lax.associative_scan(_after, (A, b), axis=len(batch))[1]
