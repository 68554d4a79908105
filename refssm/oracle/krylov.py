"""Oracles for refssm.krylov."""

from mpmath import mp


def krylov_kernel(A, B, C, *, l):
    """C A^k B, with the powers of A applied to the row C."""
    row, K = list(C), []
    for _ in range(l):
        K.append(mp.fdot(zip(row, B, strict=True)))
        row = [mp.fdot((c, A[i][j]) for i, c in enumerate(row)) for j in range(len(row))]
    return K
