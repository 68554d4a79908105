"""Oracles for refssm.hankel."""

# pyright: reportAttributeAccessIssue=false, reportArgumentType=false
# (mpmath adds its functions to the context on import)

from mpmath import mp


def hankel_matrix(h):
    """h_{i+j}, 0 beyond the last."""
    n = len(h)
    return [[h[i + j] if i + j < n else mp.zero for j in range(n)] for i in range(n)]


def markov_parameters(A, B, C, *, l):
    """C A^k B, with one state after another."""
    x, h = list(B), []
    for _ in range(l):
        h.append(mp.fdot(zip(C, x, strict=True)))
        x = [mp.fdot(zip(row, x, strict=True)) for row in A]
    return h


def transfer(A, B, C, D, s):
    """D + C (sI − A)⁻¹ B."""
    return [
        _response(
            [[(s_l if i == j else 0) - a for j, a in enumerate(row)] for i, row in enumerate(A)],
            B,
            C,
            D,
        )
        for s_l in s
    ]


def transfer_discrete(A, B, C, D, z):
    """D + C (I − A/z)⁻¹ B."""
    return [
        _response(
            [
                [(1 if i == j else 0) - a / z_l for j, a in enumerate(row)]
                for i, row in enumerate(A)
            ],
            B,
            C,
            D,
        )
        for z_l in z
    ]


def _response(M, B, C, D):
    """D + C M⁻¹ B."""
    return D + (mp.fdot(zip(C, mp.lu_solve(mp.matrix(M), mp.matrix(B)), strict=True)) if C else 0)


def gramians(A, B, C):
    """A P + P Aᴴ + B Bᴴ = 0, Aᴴ Q + Q A + Cᴴ C = 0."""
    return _twice(_continuous, A, B, C)


def gramians_discrete(A, B, C):
    """Σ_k A^k B Bᴴ A^kᴴ, Σ_k A^kᴴ Cᴴ C A^k."""
    return _twice(_sum, A, B, C)


def _twice(gramian, A, B, C):
    """The gramian of A and B, and that of Aᴴ and Cᴴ."""
    if not A:
        return [], []
    A, B, C = mp.matrix(A), mp.matrix(B), mp.matrix([[mp.conj(c)] for c in C])
    return gramian(A, B * B.H).tolist(), gramian(A.H, C * C.H).tolist()


def _continuous(A, F):
    """The gramian, by a bilinear map with step size 2/a (same gramian): N = (aI − A)⁻¹."""
    a, I = mp.mnorm(A, "f"), mp.eye(A.rows)
    N = mp.inverse(a * I - A)
    return _sum(N * (a * I + A), 2 * a * N * F * N.H)


def _sum(A, F):
    """Σ_k A^k F A^kᴴ; doubles the number of terms until A^k is negligible."""
    while (size := mp.mnorm(A, "f")) > mp.eps:
        if size > 1 / mp.eps:
            raise ValueError("no gramian: want an A whose modes all decay, but its powers grow")
        A, F = A * A, F + A * F * A.H
    return F


FALLING = 20  # extra digits per pole: each pole makes the smallest value that much smaller


def hankel_singular_values_diagonal(w, B, C):
    """P_ij = −B_i B_j*/(w_i + w_j*), Q_ij = −C_i* C_j/(w_i* + w_j): σ² is the spectrum of P Q."""
    if not w:
        return []
    with mp.workdps(2 * mp.dps + FALLING * len(w)):
        P = [[-b * mp.conj(c) / (x + mp.conj(y)) for c, y in zip(B, w, strict=True)]
             for b, x in zip(B, w, strict=True)]  # fmt: skip
        Q = [[-mp.conj(b) * c / (mp.conj(x) + y) for c, y in zip(C, w, strict=True)]
             for b, x in zip(C, w, strict=True)]  # fmt: skip
        return _values(mp.matrix(P), mp.matrix(Q))


def _values(P, Q):
    """Square roots of the eigenvalues of RᴴQR, P = R Rᴴ; descending."""
    spectrum, V = mp.eighe(P)
    R = V * mp.diag([mp.sqrt(max(x, mp.zero)) for x in spectrum])
    squares = mp.eighe(R.H * Q * R, eigvals_only=True)
    return sorted((mp.sqrt(max(x, mp.zero)) for x in squares), reverse=True)


def hankel_singular_values(A, B, C):
    """Square roots of the spectrum of P Q, the gramians of a continuous system."""
    if not B:
        return []
    with mp.workdps(3 * mp.dps + FALLING * len(B)):
        P, Q = gramians(A, B, C)
        return _values(mp.matrix(P), mp.matrix(Q))


def h2_norm(A, B, C):
    """√(C P Cᴴ)."""
    if not B:
        return mp.zero
    P, _ = gramians(A, B, C)
    row = [mp.fdot(zip(C, column, strict=True)) for column in zip(*P, strict=True)]
    return mp.sqrt(max(mp.re(mp.fdot((x, mp.conj(c)) for x, c in zip(row, C, strict=True))), 0))


def h2_norm_diagonal(w, B, C):
    """√ of the sum over all pairs of poles."""
    v = [b * c for b, c in zip(B, C, strict=True)]
    parts = list(zip(v, w, strict=True))
    return mp.sqrt(max(mp.re(mp.fsum(
        -x * mp.conj(y) / (a + mp.conj(b)) for x, a in parts for y, b in parts
    )), 0))  # fmt: skip
