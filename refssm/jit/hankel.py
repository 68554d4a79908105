"""Numba mirrors of refssm.hankel: elimination point by point, all in double precision.

Single precision is computed in double and rounded once; real arguments are computed as complex.
"""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.hankel import (
    H2_NORM_DIAGONAL,
    HANKEL_MATRIX,
    MARKOV_PARAMETERS,
    TRANSFER,
    TRANSFER_DISCRETE,
)
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit.cauchy import eliminate, quotient
from refssm.jit.krylov import krylov_kernel, krylov_kernel_vjp


@gufunc("(n)->(n,n)")
def _hankel_matrix(h, H):
    for i in range(h.size):
        for j in range(h.size):
            H[i, j] = h[i + j] if i + j < h.size else 0


@gufunc("(n,n)->(n)")
def _antidiagonals(dH, dh):
    for k in range(dh.size):
        dh[k] = 0
        for i in range(k + 1):
            dh[k] += dH[i, k - i]


@mirror(HANKEL_MATRIX)
def hankel_matrix(h):
    return _hankel_matrix(h)


@mirror(HANKEL_MATRIX)
def hankel_matrix_vjp(dH, h):
    return unbroadcast_each((_antidiagonals(dH.astype(np.result_type(dH, h))),), (h,))


@mirror(MARKOV_PARAMETERS)
def markov_parameters(A, B, C, *, l):
    return krylov_kernel(A, B, C, l=l)


@mirror(MARKOV_PARAMETERS)
def markov_parameters_vjp(dh, A, B, C, *, l):
    return krylov_kernel_vjp(dh, A, B, C, l=l)


@part
def _shifted(A, s, M):
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            M[i, j] = (s if i == j else 0) - A[i, j]


@part
def _damped(A, z, M):
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            M[i, j] = (1 if i == j else 0) - quotient(A[i, j], z)


@part
def _response(M, x, B, C, D):
    """D + C x with x = M⁻¹ B; M is used up."""
    for n in range(B.size):
        x[n] = B[n]
    eliminate(M, x)
    G = D[0]
    for n in range(B.size):
        G += C[n] * x[n]
    return G


@part
def _both_ways(M, adjoint, x, g, dG, B, C):
    """x = M⁻¹ B and g = M⁻ᴴ C* dG; M and `adjoint`, of the same size, are used up."""
    for i in range(B.size):
        x[i], g[i] = B[i], np.conj(C[i]) * dG
        for j in range(B.size):
            adjoint[i, j] = np.conj(M[j, i])
    eliminate(M, x)
    eliminate(adjoint, g)


RESPONSES, BOTH_WAYS = "(n,n),(n),(n),(),(l)->(l)", "(l),(n,n),(n),(n),(l)->(l,n),(l,n)"


@gufunc(RESPONSES, kinds=("c16",))
def _transfer(A, B, C, D, s, G):
    M, x = np.empty_like(A), np.empty_like(B)
    for l in range(s.size):
        _shifted(A, s[l], M)
        G[l] = _response(M, x, B, C, D)


@gufunc(RESPONSES, kinds=("c16",))
def _transfer_discrete(A, B, C, D, z, G):
    M, x = np.empty_like(A), np.empty_like(B)
    for l in range(z.size):
        _damped(A, z[l], M)
        G[l] = _response(M, x, B, C, D)


@gufunc(BOTH_WAYS, kinds=("c16",))
def _transfer_back(dG, A, B, C, s, x, g):
    M, adjoint = np.empty_like(A), np.empty_like(A)
    for l in range(s.size):
        _shifted(A, s[l], M)
        _both_ways(M, adjoint, x[l], g[l], dG[l], B, C)


@gufunc(BOTH_WAYS, kinds=("c16",))
def _transfer_discrete_back(dG, A, B, C, z, x, g):
    M, adjoint = np.empty_like(A), np.empty_like(A)
    for l in range(z.size):
        _damped(A, z[l], M)
        _both_ways(M, adjoint, x[l], g[l], dG[l], B, C)


def _rounded(G, *arguments):
    """G in the type of the result; the real part if all arguments are real."""
    dtype = np.result_type(*arguments)
    return (G if dtype.kind == "c" else G.real).astype(dtype)


@mirror(TRANSFER)
def transfer(A, B, C, D, s):
    return _rounded(_transfer(A, B, C, D, s), A, B, C, D, s)


@mirror(TRANSFER)
def transfer_vjp(dG, A, B, C, D, s):
    """BLAS computes the sums over points."""
    x, g = _transfer_back(dG, A, B, C, s)
    ds = -(x.conj() * g).sum(-1)
    return _gradients(g.mT @ x.conj(), ds, x, g, dG, A, B, C, D, s)


@mirror(TRANSFER_DISCRETE)
def transfer_discrete(A, B, C, D, z):
    return _rounded(_transfer_discrete(A, B, C, D, z), A, B, C, D, z)


@mirror(TRANSFER_DISCRETE)
def transfer_discrete_vjp(dG, A, B, C, D, z):
    """BLAS computes the sums over points."""
    x, g = _transfer_discrete_back(dG, A, B, C, z)
    r = 1 / z.astype(np.complex128).conj()
    dz = -r * (r * ((x @ A.mT).conj() * g).sum(-1))
    return _gradients((r[..., None] * g).mT @ x.conj(), dz, x, g, dG, A, B, C, D, z)


def _gradients(dA, ds, x, g, dG, *arguments):
    """The gradients of all arguments, rounded to their precision."""
    dtype = np.result_type(dG, *arguments)
    dtype = dtype if dtype.kind == "c" else np.result_type(dtype, np.complex64)
    dC = (dG[..., None, :] @ x.conj())[..., 0, :]
    dD = dG.astype(np.complex128).sum(-1)
    wide = unbroadcast_each((dA, g.sum(-2), dC, dD, ds), arguments)
    narrow = (dtype if np.iscomplexobj(d) else np.finfo(dtype).dtype for d in wide)
    return tuple(d.astype(t) for d, t in zip(wide, narrow, strict=True))


@gufunc("(n),(n)->()", kinds=("c16",))
def _energy(w, v, E):
    E[0] = 0
    for i in range(w.size):
        for j in range(w.size):
            E[0] -= quotient(v[i] * np.conj(v[j]), w[i] + np.conj(w[j]))


@gufunc("(n),(n)->(n),(n)", kinds=("c16",))
def _energy_back(w, v, r, s):
    """r_i* and (v_i s_i)*."""
    for i in range(w.size):
        r[i], s[i] = 0, 0
        for j in range(w.size):
            term = quotient(v[j], w[j] + np.conj(w[i]))
            r[i] -= term
            s[i] += np.conj(v[i]) * quotient(term, w[j] + np.conj(w[i]))


def _residues(w, B, C):
    """The residues and the norm, all in double precision."""
    v = B.astype(np.complex128) * C
    h = np.sqrt(np.maximum(_energy(w, v).real, 0))
    return v, np.where((w.real < 0).all(-1), h, np.nan)


@mirror(H2_NORM_DIAGONAL)
def h2_norm_diagonal(w, B, C):
    return _residues(w, B, C)[1].astype(np.result_type(w, B, C).type(0).real.dtype)


@mirror(H2_NORM_DIAGONAL)
def h2_norm_diagonal_vjp(dh, w, B, C):
    v, h = _residues(w, B, C)
    g = np.where(h == 0, 0, dh / np.where(h == 0, 1, h))[..., None]
    dv, dw = (g * x for x in _energy_back(w, v))
    dtype = np.result_type(dh, w, B, C, np.complex64)
    wide = unbroadcast_each((dw, C.conj() * dv, B.conj() * dv), (w, B, C))
    narrow = (dtype if np.iscomplexobj(d) else np.finfo(dtype).dtype for d in wide)
    return tuple(d.astype(t) for d, t in zip(wide, narrow, strict=True))
