"""Oracles of Hankel singular values: the gramians, and the square roots of the spectrum of P Q."""

# pyright: reportAttributeAccessIssue=false
# (mpmath attaches its functions to the context at import)

from mpmath import mp

FALLING = 20  # digits that one more pole may take: the smallest of n values is that much smaller


def hankel_singular_values_diagonal(w, B, C):
    """P_ij = −B_i B_j*/(w_i + w_j*), Q_ij = −C_i* C_j/(w_i* + w_j): σ² the spectrum of P Q."""
    n = len(w)
    with mp.workdps(2 * mp.dps + FALLING * n):
        P = [[-b * mp.conj(c) / (x + mp.conj(y)) for c, y in zip(B, w, strict=True)]
             for b, x in zip(B, w, strict=True)]  # fmt: skip
        Q = [[-mp.conj(b) * c / (mp.conj(x) + y) for c, y in zip(C, w, strict=True)]
             for b, x in zip(C, w, strict=True)]  # fmt: skip
        return _values(mp.matrix(P), mp.matrix(Q))


def _values(P, Q):
    """√ of the eigenvalues of RᴴQR, P = R Rᴴ; descending."""
    n = len(P)
    if n == 0:
        return []
    spectrum, V = mp.eighe(P)
    R = V * mp.diag([mp.sqrt(max(x, mp.zero)) for x in spectrum])
    squares = mp.eighe(R.H * Q * R, eigvals_only=True)
    return sorted((mp.sqrt(max(x, mp.zero)) for x in squares), reverse=True)
