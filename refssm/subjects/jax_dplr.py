# pyright: reportMissingImports=false
"""DPLR kernels in JAX as S4 computes them: resolvents that share poles, and Woodbury's identity.

The four sums over modes of a rank-1 system are one product with the matrix 1/D, row by row, so that
only one matrix of modes times nodes exists at a time. Woodbury's identity cancels where a mode is
much slower than the low-rank part, and is 0/0 for a mode without decay: such cases are declined.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from refssm.testing import implements

SLOWEST = -1e-3  # the slowest mode of `dplr_kernel_aliased`
LAYOUT = "d n, d n r, d n r, d n, d n, d -> d l"
DECLARED = {"framework": "jax", "ftz": True, "vjp": True, "layout": LAYOUT}
product = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


def bilinear(w, P, Q, B, dt):
    """I − Ā and B̄ of one system: (I − ½dt A)⁻¹ times −dt A and dt B."""
    A = jnp.diag(w) - product(P, Q.conj().T)
    I = jnp.eye(len(w), dtype=A.dtype)
    right = jnp.concatenate([-dt * A, dt * B[:, None].astype(A.dtype)], axis=1)
    solved = jnp.linalg.solve(I - dt / 2 * A, right)
    return solved[:, :-1], solved[:, -1]


def doubled(E, F):
    """I − M N from E = I − M and F = I − N; products of M itself would lose slow modes."""
    return E + F - product(E, F)


def power(E, l):
    """I − Ā^l from I − Ā, l ≥ 1."""
    result = E
    for bit in bin(l)[3:]:
        result = doubled(result, result)
        result = doubled(result, E) if bit == "1" else result
    return result


def _spectrum(w, P, Q, B, C, dt, l):
    """2 C (diag D + (1 + z) P Qᴴ)⁻¹ B at the roots of unity, D = 2 (1 − z)/dt − (1 + z) w."""
    half = np.pi * np.arange(l) / max(l, 1)
    kind, rank = jnp.result_type(w, P, Q, B, C, dt, jnp.complex64), P.shape[-1]
    below = jnp.asarray(2 * np.sin(half) * (np.sin(half) + 1j * np.cos(half)), kind)
    above = jnp.asarray(2 * np.cos(half) * (np.cos(half) - 1j * np.sin(half)), kind)
    R = 1 / (2 / dt * below - above * w[:, None])  # (n, l)
    left = jnp.concatenate([C[:, None], Q.conj()], axis=1).T  # (1 + r, n)
    right = jnp.concatenate([B[:, None], P], axis=1).T
    pairs = (left[:, None] * right).reshape((1 + rank) ** 2, len(w)).astype(kind)
    k = product(pairs, R).reshape(1 + rank, 1 + rank, l)
    if rank == 0:
        return 2 * k[0, 0]
    if rank == 1:
        return 2 * (k[0, 0] - above * k[0, 1] * k[1, 0] / (1 + above * k[1, 1]))
    capacitance = jnp.eye(rank) + jnp.moveaxis(above * k[1:, 1:], -1, 0)
    solved = jnp.linalg.solve(capacitance, k[1:, 0].T[..., None])[..., 0]  # (l, r)
    return 2 * (k[0, 0] - above * (k[0, 1:].T * solved).sum(-1))


def rows_of(one, *arguments, l):
    """`one` for each system of the batch, whose arrays are made again for the gradient."""
    rows = max(map(len, arguments))
    full = tuple(jnp.broadcast_to(a, (rows, *a.shape[1:])) for a in arguments)
    k = jax.lax.map(jax.checkpoint(lambda row: one(*row, l=l)), full)
    return k if jnp.iscomplexobj(sum(a.ravel()[:1].sum() for a in full)) else k.real


def _kernel(w, P, Q, B, C, dt, l):
    E, _ = bilinear(w, P, Q, B, dt)
    return jnp.fft.ifft(_spectrum(w, P, Q, B, product(C, power(E, l)), dt, l))


def _aliased(w, P, Q, B, C, dt, l):
    return jnp.fft.ifft(_spectrum(w, P, Q, B, C, dt, l))


def damped(x):
    """The case if every mode decays, as in S4, where real parts are near −½; else None."""
    return x if (x["w"].real <= SLOWEST).all() else None


@implements("dplr_kernel", only=damped, **DECLARED)
@partial(jax.jit, static_argnames="l")
def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """With C̃ = C (I − Ā^l) by doubling."""
    return rows_of(_kernel, w, P, Q, B, C, dt, l=l)


@implements("dplr_kernel_aliased", **DECLARED)
@partial(jax.jit, static_argnames="l")
def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """Without the factor I − Ā^l."""
    return rows_of(_aliased, w, P, Q, B, C, dt, l=l)
