# pyright: reportMissingImports=false, reportCallIssue=false, reportAttributeAccessIssue=false
"""Sums over modes in JAX: kernels of S4, S4D and HOPE.

Most sums are there twice. As their formula, left to XLA: the bars of `refssm bench` are about that
work. And as fast as we could make them: a loop over the modes in Python becomes one fused loop over
the nodes, without an array of nodes times modes. Its gradient would store every term, so gradients
use the formula, row by row.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from refssm.testing import implements

DECLARED = {"framework": "jax", "ftz": True, "vjp": True}


@implements("cauchy_kernel", layout="d n, d n, l -> d l", **DECLARED)
@jax.jit
def cauchy_formula(v, w, z):
    """Σ_n v_n / (z_l − w_n)."""
    return (v[:, None] / (z[:, None] - w[:, None])).sum(-1)


def _roots(l, dtype):
    """The nodes, computed in double precision."""
    return jnp.asarray(np.exp(-2j * np.pi * np.arange(l) / max(l, 1)), dtype)


@implements("resolvent_at_roots", layout="d n, d n -> d l", **DECLARED)
@partial(jax.jit, static_argnames="l")
def resolvent_formula(v, a, *, l):
    """Σ_n v_n / (1 − a_n ω^l)."""
    z = _roots(l, jnp.result_type(v, a, jnp.complex64))
    return (v[:, None] / (1 - a[:, None] * z[:, None])).sum(-1)


@implements("hope_transfer", layout="d n, d -> d l", **DECLARED)
@partial(jax.jit, static_argnames="l")
def hope_formula(h, dt, *, l):
    """Σ_n h_n p^{n+1} with p = (dt cos θ/2 − i sin θ/2)/(dt cos θ/2 + i sin θ/2), θ = 2πj/l."""
    half = np.pi * np.arange(l) / max(l, 1)
    cosine, sine = (jnp.asarray(f(half), dt.dtype) for f in (np.cos, np.sin))
    x = dt[:, None] * cosine
    p = (x - 1j * sine) / (x + 1j * sine)
    exponents = jnp.arange(1, h.shape[-1] + 1)[:, None]
    return (h[:, :, None] * p[:, None] ** exponents).sum(-2)


def reciprocals(x, y):
    """1/(x + iy) as two real numbers; XLA's complex division is several times slower."""
    s = 1 / (x * x + y * y)
    return x * s, -y * s


@implements("vandermonde_kernel_real", layout="d n, d n -> d l", **DECLARED)
@partial(jax.jit, static_argnames="l")
def vandermonde_formula(v, x, *, l):
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
def cauchy_unrolled(v, w, z):
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
def resolvent_unrolled(v, a, *, l):
    """As `cauchy_unrolled`, with roots of unity computed in double precision."""
    roots = np.exp(-2j * np.pi * np.arange(l) / max(l, 1))
    z = jnp.asarray(roots, jnp.result_type(v, a, jnp.complex64))
    return _resolvent(*jnp.broadcast_arrays(v, a), z)


@implements("vandermonde_kernel_real", layout="d n, d n -> d l", **DECLARED)
@partial(jax.jit, static_argnames="l")
def vandermonde_blocks(v, x, *, l):
    """√l exponentials per mode, and a matrix product: e^{x (ab + c)} = e^{x a b} e^{x c}.

    Heads of blocks times places in them; real and imaginary parts are one product of real matrices.
    """
    v, x = jnp.broadcast_arrays(v, x)
    block = math.isqrt(max(l - 1, 0)) + 1
    steps = jnp.arange(block, dtype=jnp.finfo(jnp.result_type(v, x)).dtype)
    heads = v[:, None] * jnp.exp(x[:, None] * (block * steps)[:, None])  # (d, block, n)
    places = jnp.exp(x[:, None] * steps[:, None])
    heads = jnp.concatenate([heads.real, -heads.imag], -1)
    places = jnp.concatenate([places.real, places.imag], -1)
    k = jnp.einsum("dan,dbn->dab", heads, places, precision=jax.lax.Precision.HIGHEST)
    return 2 * k.reshape(len(k), -1)[:, :l]


BLOCK = 8  # parameters whose powers are one matrix in the gradient of `hope_horner`


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


def _transfer_by_rows(h, dt, l):
    return jax.lax.map(jax.checkpoint(lambda row: _row(*row, l)), (h, dt))


_transfer.defvjp(
    lambda h, dt, l: (_transfer(h, dt, l), (h, dt)),
    lambda l, primals, dk: jax.vjp(partial(_transfer_by_rows, l=l), *primals)[1](dk),
)


@implements("hope_transfer", layout="d n, d -> d l", **DECLARED)
@partial(jax.jit, static_argnames="l")
def hope_horner(h, dt, *, l):
    """Horner's rule, unrolled to one fused loop over the nodes, in the precision of the arguments.

    Its gradient would store every step, so it goes through powers by blocks, row by row.
    """
    rows = max(len(h), len(dt))
    h = jnp.broadcast_to(h, (rows, h.shape[-1]))
    return _transfer(h, jnp.broadcast_to(dt, (rows,)), l)


# DPLR kernels as S4 computes them: resolvents that share poles, and Woodbury's identity. The four
# sums over modes of a rank-1 system are one product with the matrix 1/D, row by row, so that only
# one matrix of modes times nodes exists at a time. Woodbury's identity cancels where a mode is much
# slower than the low-rank part, and is 0/0 for a mode without decay: such cases are declined.
SLOWEST = -1e-3  # the slowest mode of `dplr_kernel_aliased`
DPLR = {**DECLARED, "layout": "d n, d n r, d n r, d n, d n, d -> d l"}
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


def _by_resolvents(w, P, Q, B, C, dt, l):
    E, _ = bilinear(w, P, Q, B, dt)
    return jnp.fft.ifft(_spectrum(w, P, Q, B, product(C, power(E, l)), dt, l))


def _aliased(w, P, Q, B, C, dt, l):
    return jnp.fft.ifft(_spectrum(w, P, Q, B, C, dt, l))


def damped(x):
    """The case if every mode decays, as in S4, where real parts are near −½; else None."""
    return x if (x["w"].real <= SLOWEST).all() else None


@implements("dplr_kernel", only=damped, **DPLR)
@partial(jax.jit, static_argnames="l")
def dplr_resolvents(w, P, Q, B, C, dt, *, l):
    """Four resolvents, with C̃ = C (I − Ā^l) by doubling."""
    return rows_of(_by_resolvents, w, P, Q, B, C, dt, l=l)


@implements("dplr_kernel_aliased", **DPLR)
@partial(jax.jit, static_argnames="l")
def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """Without the factor I − Ā^l."""
    return rows_of(_aliased, w, P, Q, B, C, dt, l=l)


def _by_powers(w, P, Q, B, C, dt, l):
    """C Ā^{ab} times Ā^c B̄: heads of blocks times places."""
    E, places = bilinear(w, P, Q, B, dt)
    places, heads, block = places[None], C[None].astype(places.dtype), 1
    while block * block < l:  # E = I − Ā^block
        places = jnp.concatenate([places, places - product(places, E.T)])
        E, block = doubled(E, E), 2 * block
    while len(heads) * block < l:
        heads = jnp.concatenate([heads, heads - product(heads, E)])
        E = doubled(E, E)
    return product(heads, places.T).ravel()[:l]


@implements("dplr_kernel", **DPLR)
@partial(jax.jit, static_argnames="l")
def dplr_powers(w, P, Q, B, C, dt, *, l):
    """Powers of Ā by doubling, in the form I − Ā^m.

    About 2 log₂ l products of matrices per system, no transform, and no poles.
    """
    return rows_of(_by_powers, w, P, Q, B, C, dt, l=l)
