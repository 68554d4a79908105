"""Honest Hankel singular values of diagonal systems: both gramians, other pivots and solvers."""

import numpy as np

from honest import Honest
from refssm._numerics.takagi import norms, orthogonal_columns
from refssm.hankel import HANKEL_SINGULAR_VALUES_DIAGONAL


def _remainders(w, b, order):
    """The columns of a Cholesky factor of −b_i b_j*/(w_i + w_j*), with poles in the given order."""
    columns = []
    for k in order:
        columns.append(b * np.sqrt(-2 * w[k].real) / -(w + w[k].conj()))
        b = b * (w - w[k]) / (w + w[k].conj())
    return np.stack(columns, axis=-1) if columns else np.zeros((0, 0), w.dtype)


def _largest_first(w, b):
    """The order of complete pivoting."""
    order = []
    size = np.abs(b) / np.sqrt(-2 * w.real)
    for _ in w:
        k = int(np.argmax(np.where(np.isin(np.arange(len(w)), order), -1, size)))
        order.append(k)
        size = size * np.abs((w - w[k]) / (w + w[k].conj()))
    return order


def slice_by_slice(one):
    """Each member of the batch by itself; NaN where an argument has NaN."""

    def values(w, B, C):
        shape = np.broadcast_shapes(w.shape, B.shape, C.shape)
        precision = np.finfo(np.result_type(w, B, C)).dtype
        out = np.empty(shape, precision)
        for i in np.ndindex(*shape[:-1]):
            member = [np.broadcast_to(x, shape)[i] for x in (w, B, C)]
            finite = all(np.isfinite(x).all() for x in member)
            out[i] = one(*member) if finite else np.nan
        return out

    return values


def _balanced(w, B, C):
    """B and C scaled to equal moduli: the state is scaled by √|C/B|."""
    size = np.sqrt(np.abs(B)) * np.sqrt(np.abs(C))
    return size * (B / np.abs(B)), size * (C / np.abs(C))


def _jacobi(G):
    """Singular values of a graded matrix: QR of it and of its transpose, then Jacobi."""
    return np.sort(orthogonal_columns(_triangle(G).conj().T)[0])[::-1]


def _triangle(G):
    """R of a QR factorization by Householder reflections; the longest column comes first."""
    R, G = [], G.copy()
    for _ in range(len(G)):
        k = int(np.argmax(norms(G)))
        x, size = G[:, k], norms(G[:, k : k + 1])[0]
        if not size > 0:
            R.append(np.zeros_like(G[0]))
            G = G[1:]
            continue
        h = x / size
        h[0] += h[0] / abs(h[0]) if h[0] else 1
        h = h / norms(h[:, None])[0]
        G = G - 2 * np.outer(h, h.conj() @ G)
        R.append(G[0])
        G = G[1:].copy()
        G[:, k] = 0
    return np.stack(R) if R else G


def both_gramians(w, B, C):
    """Cholesky factors L and M of P and Q, each with its own pivots; singular values of MᴴL."""
    B, C = _balanced(w, B, C)
    L = _remainders(w, B, _largest_first(w, B))
    M = _remainders(w.conj(), C.conj(), _largest_first(w, C))
    return _jacobi(M.conj().T @ L)


def transposed_product(w, B, C):
    """The singular values of LᴴM, with one order of pivots for both."""
    B, C = _balanced(w, B, C)
    L = _remainders(w, B, _largest_first(w, B))
    M = _remainders(w.conj(), C.conj(), _largest_first(w, B))
    return _jacobi(L.conj().T @ M)


def phases_apart(w, B, C):
    """Singular values of LᵀΦL: Φ has the phases of B C, L comes from their moduli."""
    v = B * C
    b = np.sqrt(np.abs(v)).astype(np.result_type(w, v))
    L = _remainders(w, b, _largest_first(w, b))
    return _jacobi(L.T @ ((v / np.abs(v))[:, None] * L))


def lyapunov(w, B, C):
    """Square roots of the eigenvalues of P Q, as is usual: the smallest errs by u σ_1²/σ_n²."""
    P = -np.outer(B, B.conj()) / (w[:, None] + w.conj())
    Q = -np.outer(C.conj(), C) / (w.conj()[:, None] + w)
    return np.sort(np.sqrt(np.linalg.eigvals(P @ Q).real))[::-1]


def nearly_flat(inputs):
    """Only cases with singular values within a factor of 4, for which `lyapunov` is accurate."""
    values = HANKEL_SINGULAR_VALUES_DIAGONAL.reference(*inputs.values())
    return inputs if values.size and (values[..., 0] < 4 * values[..., -1]).all() else None


NAME = HANKEL_SINGULAR_VALUES_DIAGONAL.name
SINGULAR = [
    Honest(NAME, "both_gramians", slice_by_slice(both_gramians)),
    Honest(NAME, "transposed_product", slice_by_slice(transposed_product)),
    Honest(NAME, "phases_apart", slice_by_slice(phases_apart)),
    Honest(NAME, "lyapunov", slice_by_slice(lyapunov), only=nearly_flat),
]
