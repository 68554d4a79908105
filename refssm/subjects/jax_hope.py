# pyright: reportMissingImports=false, reportCallIssue=false, reportAttributeAccessIssue=false
"""HOPE's transfer function in JAX: Horner's rule, unrolled to one fused loop over the nodes.

Its gradient would store every step, so it goes through powers by blocks, row by row.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from refssm.testing import implements

BLOCK = 8


def _nodes(dt, l, precision):
    """1/z'_j on the unit circle, by half angles: real and imaginary parts."""
    half = np.pi * np.arange(l) / max(l, 1)
    cosine, s = (jnp.asarray(f(half), precision) for f in (np.cos, np.sin))
    x = dt[..., None] * cosine
    scale = 1 / (x * x + s * s)
    return (x - s) * (x + s) * scale, -2 * x * s * scale


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _transfer(h, dt, l):
    """p (h_0 + p (h_1 + …)) at p = 1/z'."""
    p, q = _nodes(dt, l, jnp.finfo(h.dtype).dtype)
    real = imaginary = jnp.zeros_like(p)
    for n in reversed(range(h.shape[-1])):
        real, imaginary = real + h[:, n, None].real, imaginary + h[:, n, None].imag
        real, imaginary = real * p - imaginary * q, real * q + imaginary * p
    return jax.lax.complex(real, imaginary)


def _powers(p, count):
    """p, p², … by doubling: (count, l)."""
    table = p[None]
    while len(table) < count:
        table = jnp.concatenate([table, table * table[-1]])
    return table[:count]


def _row(h, dt, l):
    """One row: Σ_b p^{8b} Σ_i h_{8b+i} p^{i+1}."""
    p = jax.lax.complex(*_nodes(dt, l, jnp.finfo(h.dtype).dtype))
    count = -(-max(len(h), 1) // BLOCK)
    blocks = jnp.pad(h, (0, count * BLOCK - len(h))).reshape(count, BLOCK).astype(p.dtype)
    first = _powers(p, BLOCK)
    inner = jnp.matmul(blocks, first, precision=jax.lax.Precision.HIGHEST)
    if count == 1:
        return inner[0]
    return inner[0] + (inner[1:] * _powers(first[-1], count - 1)).sum(0)


def _by_rows(h, dt, l):
    return jax.lax.map(jax.checkpoint(lambda row: _row(*row, l)), (h, dt))


_transfer.defvjp(
    lambda h, dt, l: (_transfer(h, dt, l), (h, dt)),
    lambda l, primals, dk: jax.vjp(partial(_by_rows, l=l), *primals)[1](dk),
)


@implements("hope_transfer", framework="jax", ftz=True, vjp=True, layout="d n, d -> d l")
@partial(jax.jit, static_argnames="l")
def hope_transfer(h, dt, *, l):
    """Horner's rule in the precision of the arguments."""
    rows = max(len(h), len(dt))
    h = jnp.broadcast_to(h, (rows, h.shape[-1]))
    return _transfer(h, jnp.broadcast_to(dt, (rows,)), l)
