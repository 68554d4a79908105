"""Mirrors of refssm.hankel.transfer: one small system for each point, solved as a batch by cuBLAS.

A point exactly at an eigenvalue of A gives infinity or NaN at this point, on the card. In the host
build NumPy raises its LinAlgError for the whole call.
"""

from __future__ import annotations

from refssm.hankel import TRANSFER, TRANSFER_DISCRETE
from refssm_gpu._algebra.parts import adjoint, conj, identity, solve
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast_each
from refssm_gpu._launching.checked import mirror


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
