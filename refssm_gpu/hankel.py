"""Mirrors of refssm.hankel: matrices, Markov parameters and transfer functions.

A matrix is one gather; Markov parameters are the doubling of the Krylov kernel. A transfer function
is one small system for each point, solved as a batch by cuBLAS. A point exactly at an eigenvalue of
A gives infinity or NaN at this point, on the card; in the host build NumPy raises its LinAlgError
for the whole call.

Gramians, singular values and the H2 norm of a dense system have no mirror: CuPy has no Schur form
and no Lyapunov solver.
"""

from refssm.hankel import (
    H2_NORM_DIAGONAL,
    HANKEL_MATRIX,
    MARKOV_PARAMETERS,
    TRANSFER,
    TRANSFER_DISCRETE,
)
from refssm_gpu import krylov
from refssm_gpu._algebra.parts import adjoint, at_places, conj, identity, solve
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast, unbroadcast_each
from refssm_gpu._launching.checked import mirror

_kernel = krylov.krylov_kernel.__wrapped__  # without its checks, and under its own name in messages
_kernel_vjp = krylov.krylov_kernel_vjp.__wrapped__


@mirror(HANKEL_MATRIX)
def hankel_matrix(h):
    xp, n = namespace(h), h.shape[-1]
    i = xp.arange(n)
    return at_places(h, i[:, None] + i)


@mirror(HANKEL_MATRIX)
def hankel_matrix_vjp(dH, h):
    """Antidiagonals become columns, then they are summed."""
    xp, n = namespace(dH), h.shape[-1]
    i, k = xp.arange(n)[:, None], xp.arange(n)
    flat = xp.reshape(dH, (*dH.shape[:-2], n * n))
    along = at_places(flat, xp.where(i <= k, i * n + k - i, n * n))
    return (unbroadcast(xp.sum(along, axis=-2), h),)


@mirror(MARKOV_PARAMETERS)
def markov_parameters(A, B, C, *, l):
    return _kernel(A, B, C, l=l)


@mirror(MARKOV_PARAMETERS)
def markov_parameters_vjp(dh, A, B, C, *, l):
    return _kernel_vjp(dh, A, B, C, l=l)


@mirror(TRANSFER)
def transfer(A, B, C, D, s):
    return _response(_shifted(A, s), B, C, D)


@mirror(TRANSFER)
def transfer_vjp(dG, A, B, C, D, s):
    xp = namespace(dG)
    x, g = _both_ways(_shifted(A, s), B, C, dG)
    dA = xp.matrix_transpose(g) @ conj(x)
    ds = -xp.sum(conj(x) * g, axis=-1)
    return unbroadcast_each((dA, *_of_vectors(dG, x, g), ds), (A, B, C, D, s))


def _shifted(A: Array, s: Array) -> Array:
    """sI − A, (…, l, n, n)."""
    return s[..., :, None, None] * identity(A) - A[..., None, :, :]


def _response(M: Array, B: Array, C: Array, D: Array) -> Array:
    """D + C M⁻¹ B at every point."""
    x = solve(M, B[..., None, :, None])
    return D[..., None] + (C[..., None, None, :] @ x)[..., 0, 0]


def _both_ways(M: Array, B: Array, C: Array, dG: Array) -> tuple[Array, Array]:
    """M⁻¹ B and M⁻ᴴ C* dG, (…, l, n)."""
    driven = conj(C)[..., None, :] * dG[..., :, None]
    return solve(M, B[..., None, :, None])[..., 0], solve(adjoint(M), driven[..., None])[..., 0]


def _of_vectors(dG: Array, x: Array, g: Array) -> tuple[Array, Array, Array]:
    """dB = Σ g, dC = Σ dG x* and dD = Σ dG, over all points."""
    xp = namespace(dG)
    dC = (dG[..., None, :] @ conj(x))[..., 0, :]
    return xp.sum(g, axis=-2), dC, xp.sum(dG, axis=-1)


@mirror(TRANSFER_DISCRETE)
def transfer_discrete(A, B, C, D, z):
    return _response(_damped(A, z), B, C, D)


@mirror(TRANSFER_DISCRETE)
def transfer_discrete_vjp(dG, A, B, C, D, z):
    xp = namespace(dG)
    x, g = _both_ways(_damped(A, z), B, C, dG)
    r = 1 / conj(z)
    dA = xp.matrix_transpose(r[..., None] * g) @ conj(x)
    Ax = x @ xp.matrix_transpose(A)
    dz = -r * (r * xp.sum(conj(Ax) * g, axis=-1))
    return unbroadcast_each((dA, *_of_vectors(dG, x, g), dz), (A, B, C, D, z))


def _damped(A: Array, z: Array) -> Array:
    """I − A/z, (…, l, n, n)."""
    return identity(A) - A[..., None, :, :] / z[..., :, None, None]


@mirror(H2_NORM_DIAGONAL)
def h2_norm_diagonal(w, B, C):
    xp, v = namespace(w), B * C
    h = _root(xp.sum(v * _conjugate_sum(w, v), axis=-1))
    return xp.where(xp.all(xp.real(w) < 0, axis=-1), h, xp.nan)


@mirror(H2_NORM_DIAGONAL)
def h2_norm_diagonal_vjp(dh, w, B, C):
    xp, v = namespace(dh), B * C
    r, s = _conjugate_sum(w, v), _conjugate_sum(w, v, 2)
    h = _root(xp.sum(v * r, axis=-1))
    g = xp.where(h == 0, 0 * h, dh / xp.where(h == 0, 1 + 0 * h, h))[..., None]
    dv, dw = g * conj(r), g * conj(v * s)
    return unbroadcast_each((dw, conj(C) * dv, conj(B) * dv), (w, B, C))


def _root(energy: Array) -> Array:
    """√ of an energy; one that rounding made negative counts as 0."""
    xp = namespace(energy)
    return xp.sqrt(xp.maximum(xp.real(energy), 0 * xp.real(energy)))


def _conjugate_sum(w: Array, v: Array, power: int = 1) -> Array:
    """Σ_j v_j*/(−(w_i + w_j*))^power."""
    xp, sums = namespace(w), -(w[..., :, None] + conj(w)[..., None, :])
    terms = conj(v)[..., None, :]
    for _ in range(power):
        terms = terms / sums
    return xp.sum(terms, axis=-1)
