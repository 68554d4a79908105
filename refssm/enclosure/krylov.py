"""Enclosures for refssm.krylov: A multiplies B repeatedly."""

from refssm.enclosure.algebra import column, dot, matrix


def krylov_kernel(A, B, C, *, l):
    """C A^k B, with the powers of A applied to B."""
    if not A:
        return [0] * l
    M, x, K = matrix(A), column(B), []
    for _ in range(l):
        K.append(dot(C, x.entries()))
        x = M * x
    return K
