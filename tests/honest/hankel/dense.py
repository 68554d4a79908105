"""Honest Hankel singular values of dense systems: other Lyapunov solvers, roots or no roots."""

import numpy as np
from scipy.linalg import solve_continuous_lyapunov, svd

from honest import Honest
from refssm._numerics.balance import square_root
from refssm.hankel import HANKEL_SINGULAR_VALUES


def by_scipy(A, F):
    """SciPy's solver of Lyapunov's equation."""
    # of a real A and a complex F it takes a real Schur form for a triangle: docs/findings.md
    return solve_continuous_lyapunov(A.astype(np.result_type(A, F)), -F)


def by_kronecker(A, F):
    """(I ⊗ A + A* ⊗ I) vec X = −vec F for small A, else SciPy's solver."""
    n = len(A)
    if n > 8:
        return by_scipy(A, F)
    I = np.eye(n)
    K = np.kron(A, I) + np.kron(I, A.conj())
    return np.linalg.solve(K, -F.reshape(-1, 1)).reshape(n, n)


def no_roots(P, Q):
    """Square roots of |λ| for the eigenvalues λ of P Q."""
    return np.sort(np.sqrt(np.abs(np.linalg.eigvals(P @ Q))))[::-1]


def one_root(P, Q):
    """Square roots of the eigenvalues of LᴴQL."""
    L = square_root((P + P.conj().T) / 2)
    M = L.conj().T @ Q @ L
    return np.sqrt(np.abs(np.linalg.eigvalsh((M + M.conj().T) / 2)))[::-1]


def two_roots(P, Q):
    """The singular values of √Q √P, the Hermitian roots by SVD."""
    roots = []
    for X in (Q, P):
        U, s, Vh = np.linalg.svd(X)
        roots.append((U * np.sqrt(s)) @ Vh)
    return svd(roots[0] @ roots[1], compute_uv=False)


def of_gramians(solve, values):
    """Each member of the batch by itself; NaN where an argument has NaN."""

    def form(A, B, C):
        shape = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
        n, precision = A.shape[-1], np.finfo(np.result_type(A, B, C)).dtype
        sigma = np.full((*shape, n), np.nan, precision)
        for i in np.ndindex(*shape if n else (0,)):
            a, b, c = (
                np.broadcast_to(x, (*shape, *core))[i]
                for x, core in ((A, (n, n)), (B, (n,)), (C, (n,)))
            )
            if all(np.isfinite(x).all() for x in (a, b, c)):
                P = solve(a, np.outer(b, b.conj()))
                Q = solve(a.conj().T, np.outer(c.conj(), c))
                sigma[i] = values(P, Q)
        return sigma

    return form


right = HANKEL_SINGULAR_VALUES
FORMS = {
    "no_roots": of_gramians(by_scipy, no_roots),
    "one_root": of_gramians(by_scipy, one_root),
    "two_roots": of_gramians(by_scipy, two_roots),
    "kronecker": of_gramians(by_kronecker, one_root),
}
DENSE = [
    *(Honest(right.name, name, form) for name, form in FORMS.items()),
]
