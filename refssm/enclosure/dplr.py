"""Enclosures for refssm.dplr: rows C Ā^k, each from the row before."""

from refssm.enclosure.algebra import column, conj, dot, identity, matrix


def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """(C Ā^k) B̄, A = diag w − P Qᴴ and the bilinear map."""
    if not w:
        return [0] * l
    A_bar, B_bar = _bilinear(w, P, Q, B, dt)
    return _seen(A_bar, B_bar, column(C), l)


def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """(C (I − Ā^l)⁻¹ Ā^k) B̄."""
    if not (w and l):
        return [0] * l
    A_bar, B_bar = _bilinear(w, P, Q, B, dt)
    turned = (identity(len(w)) - A_bar**l).transpose()
    return _seen(A_bar, B_bar, turned.solve(column(C)), l)


def _bilinear(w, P, Q, B, dt):
    """Solve (2I − dt A) X = [2I + dt A, 2 dt B]."""
    n = len(w)
    A = [
        [(w[i] if i == k else 0) - dot(P[i], [conj(q) for q in Q[k]]) for k in range(n)]
        for i in range(n)
    ]
    F, two = matrix([[a * dt for a in row] for row in A]), identity(n) * 2
    M = two - F
    return M.solve(two + F), M.solve(column([2 * (b * dt) for b in B]))


def _seen(A_bar, B_bar, row, l):
    """rᵀ B̄, rᵀ Ā B̄, …: Ā multiplies the row."""
    A_T, K = A_bar.transpose(), []
    for _ in range(l):
        K.append(dot(row.entries(), B_bar.entries()))
        row = A_T * row
    return K
