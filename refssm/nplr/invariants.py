"""Invariants: quantities that no change of basis alters; the judge compares these.

Eigenvectors have a free phase, modes a free order, a repeated eigenvalue a free basis, and any
unitary matrix may rotate the columns of P. None of that changes the quantities here.
"""

import numpy as np

from refssm._declaration.contract import Invariant

MOMENTS = 4


def system_invariants(w, P, B, V, **_):
    """Invariants of A = V (diag w − P Pᴴ) Vᴴ and b = V B, and the moments Bᴴ (diag w − P Pᴴ)^j B.

    The moments do not contain V: they check w, P and B against each other.
    """
    VP, low_rank, b = V @ P, _norm(P) ** 2, _norm(B)
    N, L = V * w @ V.conj().T, VP @ VP.conj().T
    A = _norm(w) + low_rank  # forming A + p pᵀ leaves A's rounding errors there
    x, moments = B, []
    for j in range(MOMENTS):
        factors = j + 2  # each factor has its own error
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
    """Invariants of the normal matrix V diag(w) Vᴴ."""
    return (
        Invariant("basis VᴴV", V.conj().T @ V, 1.0),
        Invariant("normal part", V * w @ V.conj().T, _norm(w)),
        Invariant("spectrum", w, _norm(w), matched=True),
    )


def matrix_invariants(A, **_):
    """The matrix A: A + p pᵀ cancels on the diagonal, so its error there is that of A."""
    return (Invariant("matrix", A, _norm(A)),)


def _norm(x):
    return float(np.sqrt((np.abs(x) ** 2).sum()))
