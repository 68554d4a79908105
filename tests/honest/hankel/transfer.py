"""Honest Hankel matrices, Markov parameters and transfer functions; also collects the gramians."""

import numpy as np
from scipy import linalg

from honest import Honest, mirror
from honest import krylov as powers
from honest.hankel.dense import DENSE
from honest.hankel.energy import ENERGIES
from honest.hankel.gramians import GRAMIANS_BOTH
from honest.hankel.singular import SINGULAR
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.hankel import HANKEL_MATRIX, MARKOV_PARAMETERS, TRANSFER, TRANSFER_DISCRETE


def by_scipy(h):
    """scipy.linalg.hankel of each member."""
    H = np.empty((*h.shape, h.shape[-1]), h.dtype)
    for i in np.ndindex(*h.shape[:-1]):
        H[i] = linalg.hankel(h[i])
    return H


def windows_of_padded(h):
    """Row i is the window from i on of h, padded with zeros."""
    padded = np.concatenate([h, np.zeros_like(h)], axis=-1)
    n = h.shape[-1]
    rows = [padded[..., i : i + n] for i in range(n)]
    return np.stack(rows, axis=-2) if rows else np.zeros((*h.shape, 0), h.dtype)


def reversed_toeplitz(h):
    """An upper triangular Toeplitz matrix with rows and columns reversed."""
    n = h.shape[-1]
    H = np.zeros((*h.shape, n), h.dtype)
    for k in range(n):
        i = np.arange(k + 1)
        H[..., i, k - i] = h[..., k, None]
    return H


def traces(dH, h):
    """Each antidiagonal is a diagonal of the matrix with its columns reversed."""
    flipped, n = dH[..., ::-1], h.shape[-1]
    sums = [np.trace(flipped, n - 1 - k, axis1=-2, axis2=-1) for k in range(n)]
    return unbroadcast_each((np.stack(sums, -1) if n else dH[..., 0],), (h,))


def summed_windows(dH, h):
    """Rows added one after another at their lags."""
    n, total = h.shape[-1], np.zeros(dH.shape[:-1], dH.dtype)
    for i in range(n):
        total[..., i:] += dH[..., i, : n - i]
    return unbroadcast_each((total,), (h,))


def shifted(A, s):
    """sI − A at every point s."""
    return s[..., :, None, None] * np.eye(A.shape[-1]) - A[..., None, :, :]


def damped(A, z):
    """I − A/z at every point z."""
    return np.eye(A.shape[-1]) - A[..., None, :, :] / z[..., :, None, None]


def wide(*arrays):
    """The arrays in double precision, complex."""
    return [a.astype(np.complex128) for a in arrays]


def rounded(G, *arrays):
    """G in the type of the result."""
    dtype = np.result_type(*arrays)
    return (G if dtype.kind == "c" else G.real).astype(dtype)


def solved(M, N):
    """LAPACK's solve; NaN where M has NaN or is singular."""
    M, N = (np.broadcast_to(x, (*_batch(M, N), *x.shape[-2:])) for x in (M, N))
    finite = np.all(np.isfinite(M), axis=(-2, -1), keepdims=True)
    M = np.where(finite, M, np.eye(M.shape[-1]))
    return np.where(finite, np.linalg.solve(M, N), np.nan)


def _batch(M, N):
    return np.broadcast_shapes(M.shape[:-2], N.shape[:-2])


def by_lapack(matrix):
    """LAPACK's elimination, starting with B."""

    def form(A, B, C, D, s):
        x = solved(matrix(A, s), B[..., None, :, None])[..., 0]
        G = D[..., None] + (C[..., None, :] * x).sum(-1)
        return rounded(G, A, B, C, D, s)

    return form


def from_the_left(matrix):
    """The row C (sI − A)⁻¹ first, then times B."""

    def form(A, B, C, D, s):
        g = solved(matrix(A, s).mT, C[..., None, :, None])[..., 0]
        return rounded(D[..., None] + (g * B[..., None, :]).sum(-1), A, B, C, D, s)

    return form


def orthogonal(matrix):
    """M = Q R: the row C R⁻¹ times the column Qᴴ B, for each point by itself."""

    def form(A, B, C, D, s):
        M = matrix(A, s)
        finite = np.isfinite(M).all((-2, -1))
        Q, R = np.linalg.qr(np.where(finite[..., None, None], M, np.eye(M.shape[-1])))
        row = solved(R.mT, C[..., None, :, None])[..., 0]
        column = (Q.mT.conj() @ B[..., None, :, None])[..., 0]
        G = D[..., None] + (row * column).sum(-1)
        return rounded(np.where(finite, G, np.nan), A, B, C, D, s)

    return form


def cramer(matrix):
    """det [[M, B], [−C, D]] / det M, in double precision."""

    def form(A, B, C, D, s):
        if A.shape[-1] > 8 or np.result_type(A, B, C, D, s).itemsize > 8:
            raise NotImplementedError("determinants lose digits")
        M = matrix(*wide(A, s))
        batch = np.broadcast_shapes(M.shape[:-2], (*B.shape[:-1], 1), (*C.shape[:-1], 1))
        batch = np.broadcast_shapes(batch, (*D.shape, 1))
        blocks = (M, B[..., None, :, None], -C[..., None, None, :], D[..., None, None, None])
        M, B1, C1, D1 = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in blocks)
        whole = np.concatenate([np.concatenate([M, B1], -1), np.concatenate([C1, D1], -1)], axis=-2)
        return rounded(np.linalg.det(whole) / np.linalg.det(M), A, B, C, D, s)

    return form


def hessenberg(scale, shift):
    """A = Q H Qᴴ once, then a Hessenberg solve at every point, in double precision."""

    def form(A, B, C, D, s):
        if not np.isfinite(A).all():
            raise NotImplementedError("SciPy refuses what is not finite")
        H, Q = np.zeros(A.shape, complex), np.zeros(A.shape, complex)
        for i in np.ndindex(*(A.shape[:-2] if A.size else (0,))):
            H[i], Q[i] = linalg.hessenberg(A[i], calc_q=True)
        b, c = (Q.mT.conj() @ B[..., None])[..., 0], (C[..., None, :] @ Q)[..., 0, :]
        r, I = scale(s)[..., :, None, None], np.eye(A.shape[-1])
        x = solved(shift(s)[..., :, None, None] * I - r * H[..., None, :, :], b[..., None, :, None])
        return rounded(D[..., None] + (c[..., None, :] * x[..., 0]).sum(-1), A, B, C, D, s)

    return form


def in_double(op):
    """The reference in double precision, rounded at the end."""
    return lambda *args: rounded(op.reference(*wide(*args)), *args)


def backwards_numbered(op):
    """The reference with the states in reverse order: other pivots, other sums."""
    return lambda A, B, C, D, s: op.reference(A[..., ::-1, ::-1], B[..., ::-1], C[..., ::-1], D, s)


def turned(op):
    """The VJP by the transposed system; its gradients are transposed back."""

    def vjp(dG, A, B, C, D, s):
        dA, dC, dB, dD, ds = op.bare_vjp(dG, A.mT, C, B, D, s)
        return dA.mT, dB, dC, dD, ds

    return vjp


def through_inverses(dG, A, B, C, D, s):
    """R = (sI − A)⁻¹ itself: ∂G/∂A = Rᵀ Cᵀ Bᵀ Rᵀ, ∂G/∂s = −C R² B."""
    R = np.linalg.inv(shifted(A, s))
    row, column = (C[..., None, None, :] @ R)[..., 0, :], (R @ B[..., None, :, None])[..., 0]
    dA = np.einsum("...l,...li,...lj->...ij", dG, row.conj(), column.conj())
    dB, dC = ((dG[..., None] * x.conj()).sum(-2) for x in (row, column))
    ds = -dG * (row * column).sum(-1).conj()
    return unbroadcast_each((dA, dB, dC, dG.sum(-1), ds), (A, B, C, D, s))


FORMS = {
    TRANSFER: (shifted, hessenberg(np.ones_like, np.copy)),
    TRANSFER_DISCRETE: (damped, hessenberg(np.reciprocal, np.ones_like)),
}


def of_transfer(op):
    """All honest ways to compute a transfer function."""
    matrix, reduced = FORMS[op]
    forms = {f.__name__: f(matrix) for f in (by_lapack, from_the_left, orthogonal, cramer)}
    forms |= {f.__name__: f(op) for f in (in_double, backwards_numbered)}
    return [
        Honest(op.name, "hessenberg", reduced, turned(op)),
        *(Honest(op.name, name, form) for name, form in forms.items()),
    ]


MARKOV = (powers.as_a_scan, powers.from_both_sides, powers.even_and_odd, powers.doubled_rows)

IMPLEMENTATIONS = [
    Honest(HANKEL_MATRIX.name, "by_scipy", by_scipy, traces),
    Honest(HANKEL_MATRIX.name, "windows_of_padded", windows_of_padded, summed_windows),
    Honest(HANKEL_MATRIX.name, "reversed_toeplitz", reversed_toeplitz),
    mirror(MARKOV_PARAMETERS, "doubling"),
    Honest(MARKOV_PARAMETERS.name, "from_the_left", powers.from_the_left, powers.from_the_left_vjp),
    Honest(MARKOV_PARAMETERS.name, "two_tables", powers.two_tables, powers.through_hankel),
    *(Honest(MARKOV_PARAMETERS.name, form.__name__, form) for form in MARKOV),
    *of_transfer(TRANSFER),
    Honest(TRANSFER.name, "through_inverses", by_lapack(shifted), through_inverses),
    *of_transfer(TRANSFER_DISCRETE),
    *GRAMIANS_BOTH,
    *DENSE,
    *SINGULAR,
    *ENERGIES,
]
