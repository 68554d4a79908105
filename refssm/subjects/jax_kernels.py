# pyright: reportMissingImports=false, reportCallIssue=false, reportAttributeAccessIssue=false
"""Sums over modes in JAX: kernels of S4 and S4D, as the formula and as it runs fastest on a CPU.

A loop over the modes in Python becomes one fused loop over the nodes, without an array of nodes
times modes. Its gradient would store every term, so gradients use the formula, row by row.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from refssm.testing import implements

DECLARED = {"framework": "jax", "ftz": True, "vjp": True}


def reciprocals(x, y):
    """1/(x + iy) as two real numbers; XLA's complex division is several times slower."""
    s = 1 / (x * x + y * y)
    return x * s, -y * s


@implements("vandermonde_kernel_real", layout="d n, d n -> d l", **DECLARED)
@partial(jax.jit, static_argnames="l")
def vandermonde_kernel_real(v, x, *, l):
    """The formula; XLA fuses exponential and sum."""
    precision = jnp.finfo(jnp.result_type(v, x)).dtype
    powers = jnp.exp(x[:, :, None] * jnp.arange(l, dtype=precision))
    return 2 * (v[:, :, None] * powers).sum(-2).real


@jax.custom_vjp
def _cauchy(v, w, z):
    """Σ_n v_n / (z_l − w_n), unrolled over the modes."""
    real = imaginary = jnp.zeros_like((v + w)[:, :1] * z).real
    for n in range(v.shape[-1]):
        column = v[:, n, None], w[:, n, None]
        x, y = reciprocals(*(part(z) - part(column[1]) for part in (jnp.real, jnp.imag)))
        real += column[0].real * x - column[0].imag * y
        imaginary += column[0].real * y + column[0].imag * x
    any_complex = any(map(jnp.iscomplexobj, (v, w, z)))
    return jax.lax.complex(real, imaginary) if any_complex else real


def _cauchy_by_rows(v, w, z):
    """The formula for one row after another, whose arrays of nodes times modes fit the cache."""
    return jax.lax.map(jax.checkpoint(lambda row: (row[0] / (z[:, None] - row[1])).sum(-1)), (v, w))


_cauchy.defvjp(
    lambda *primals: (_cauchy(*primals), primals),
    lambda primals, dk: jax.vjp(_cauchy_by_rows, *primals)[1](dk),
)


@implements("cauchy_kernel", layout="d n, d n, l -> d l", **DECLARED)
@jax.jit
def cauchy_kernel(v, w, z):
    """One fused loop; its gradient row by row."""
    return _cauchy(*jnp.broadcast_arrays(v, w), z)


@jax.custom_vjp
def _resolvent(v, a, z):
    """Σ_n v_n / (1 − a_n z_l), unrolled over the modes."""
    real = imaginary = jnp.zeros_like((v + a)[:, :1] * z).real
    for n in range(v.shape[-1]):
        column, turned = v[:, n, None], a[:, n, None] * z
        x, y = reciprocals(1 - turned.real, -turned.imag)
        real += column.real * x - column.imag * y
        imaginary += column.real * y + column.imag * x
    return jax.lax.complex(real, imaginary)


def _resolvent_by_rows(v, a, z):
    row_of = jax.checkpoint(lambda row: (row[0] / (1 - row[1] * z[:, None])).sum(-1))
    return jax.lax.map(row_of, (v, a))


_resolvent.defvjp(
    lambda *primals: (_resolvent(*primals), primals),
    lambda primals, dk: jax.vjp(_resolvent_by_rows, *primals)[1](dk),
)


@implements("resolvent_at_roots", layout="d n, d n -> d l", **DECLARED)
@partial(jax.jit, static_argnames="l")
def resolvent_at_roots(v, a, *, l):
    """As `cauchy_kernel`, with roots of unity computed in double precision."""
    roots = np.exp(-2j * np.pi * np.arange(l) / max(l, 1))
    z = jnp.asarray(roots, jnp.result_type(v, a, jnp.complex64))
    return _resolvent(*jnp.broadcast_arrays(v, a), z)
