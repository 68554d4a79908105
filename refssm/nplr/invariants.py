"""What no choice of basis changes: by these the outputs of a decomposition are judged.

Eigenvectors have a free phase, modes a free order, a repeated eigenvalue a free basis, and the
columns of P may be turned by any unitary matrix. None of that moves what is computed here.
"""

import numpy as np

from refssm._contract import Invariant

MOMENTS = 4


def system_invariants(w, P, B, V, **_):
    """Of A = V (diag w − P Pᴴ) Vᴴ and b = V B, with the moments Bᴴ (diag w − P Pᴴ)^j B.

    The moments have no V in them: they hold w, P and B to each other.
    """
    VP, low_rank, b = V @ P, _norm(P) ** 2, _norm(B)
    N, L = V * w @ V.conj().T, VP @ VP.conj().T
    A = _norm(w) + low_rank  # who forms A + p pᵀ knows the normal part to the roundings of A
    x, moments = B, []
    for j in range(MOMENTS):
        factors = j + 2  # each of them is off by its own error
        moments.append(Invariant(f"moment {j}", np.vdot(B, x), factors * b**2 * A**j))
        x = w * x - P @ (P.conj().T @ x)
    return (
        Invariant("basis VᴴV", V.conj().T @ V, 1.0),
        Invariant("normal part", N, A),
        Invariant("spectrum", w, A, matched=True),
        Invariant("low-rank part", L, low_rank),
        Invariant("matrix A", N - L, A),
        Invariant("input b", V @ B, b),
        *moments,
    )


def normal_invariants(w, V, **_):
    """Of the normal matrix V diag(w) Vᴴ."""
    return (
        Invariant("basis VᴴV", V.conj().T @ V, 1.0),
        Invariant("normal part", V * w @ V.conj().T, _norm(w)),
        Invariant("spectrum", w, _norm(w), matched=True),
    )


def matrix_invariants(A, **_):
    """A itself: A + p pᵀ cancels on the diagonal, which is then known to the roundings of A."""
    return (Invariant("matrix", A, _norm(A)),)


def _norm(x):
    return float(np.sqrt((np.abs(x) ** 2).sum()))
