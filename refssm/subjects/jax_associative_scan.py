# pyright: reportMissingImports=false
"""jax.lax.associative_scan: a linear scan by a tree, and a hand-written gradient by a reverse scan.

XLA flushes subnormal numbers to zero on the CPU: `ftz=True`.
"""

import jax
import jax.numpy as jnp

from refssm.testing import implements


def _after(first, second):
    """Two affine steps x ↦ a x + b composed to one; `first` is applied first."""
    return first[0] * second[0], first[1] * second[0] + second[1]


@implements("linear_scan", framework="jax", ftz=True)
@jax.jit
def linear_scan(a, b):
    """associative_scan along time."""
    a, b = jnp.broadcast_arrays(a, b.astype(jnp.result_type(a, b)))
    return jax.lax.associative_scan(_after, (a, b), axis=-2)[1]


@jax.jit
def linear_scan_vjp(dx, a, b):
    """db by associative_scan(…, reverse=True), da_k = db_k conj(x_{k-1}): refssm's convention."""
    x = linear_scan(a, b)
    later = jnp.concatenate([a[..., 1:, :], jnp.zeros_like(a[..., :1, :])], axis=-2)
    later = jnp.conj(later).astype(x.dtype)
    pairs = later, dx.astype(x.dtype)
    # axis=-2 raises TypeError with reverse=True, see docs/findings.md
    _, db = jax.lax.associative_scan(_after, pairs, axis=x.ndim - 2, reverse=True)
    before = jnp.concatenate([jnp.zeros_like(x[..., :1, :]), x[..., :-1, :]], axis=-2)
    da = db * jnp.conj(before)
    return _of_kind(da, a), _of_kind(db, b)


def _of_kind(gradient, primal):
    return gradient if jnp.iscomplexobj(primal) else gradient.real
