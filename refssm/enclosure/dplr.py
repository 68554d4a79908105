"""Enclosures for refssm.dplr: rows C Ā^k, each from the row before.

A system of conjugate pairs is one of real and imaginary parts: y = w x − 2 P Re(Qᴴ x) is

    (Re y, Im y) = ([Re w, −Im w; Im w, Re w] − 2 [Re P; Im P] [Re Q; Im Q]ᵀ) (Re x, Im x)
"""

from flint import acb

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


def dplr_kernel_real(w, P, Q, B, C, dt, *, l):
    """2 (Re C, −Im C) Ā^k B̄ with the real Ā."""
    if not w:
        return [0] * l
    A_bar, B_bar = _mapped(_real(w, P, Q), _parts(B), dt)
    return [y.real for y in _seen(A_bar, B_bar, _output(C), l)]


def dplr_kernel_aliased_real(w, P, Q, B, C, dt, *, l):
    """2 (Re C, −Im C) (I − Ā^l)⁻¹ Ā^k B̄ with the real Ā."""
    if not (w and l):
        return [0] * l
    A_bar, B_bar = _mapped(_real(w, P, Q), _parts(B), dt)
    turned = (identity(2 * len(w)) - A_bar**l).transpose()
    return [y.real for y in _seen(A_bar, B_bar, turned.solve(_output(C)), l)]


def _parts(x):
    """Real parts, then imaginary parts, of a list of balls."""
    balls = [acb(y) for y in x]
    return [y.real for y in balls] + [y.imag for y in balls]


def _output(C):
    """2 (Re C, −Im C) as a column."""
    return column([2 * c for c in _parts([conj(c) for c in C])])


def _real(w, P, Q):
    """The matrix of real and imaginary parts."""
    n, P, Q = len(w), _rows(P), _rows(Q)
    A = [[-2 * dot(P_i, Q_k) for Q_k in Q] for P_i in P]
    for i, w_i in enumerate(map(acb, w)):
        A[i][i], A[i + n][i + n] = A[i][i] + w_i.real, A[i + n][i + n] + w_i.real
        A[i][i + n], A[i + n][i] = A[i][i + n] - w_i.imag, A[i + n][i] + w_i.imag
    return A


def _rows(F):
    """Real parts, then imaginary parts, of rows of balls."""
    rows = [[acb(x) for x in row] for row in F]
    return [[x.real for x in row] for row in rows] + [[x.imag for x in row] for row in rows]


def _bilinear(w, P, Q, B, dt):
    """Ā and B̄ of A = diag w − P Qᴴ."""
    n = len(w)
    A = [
        [(w[i] if i == k else 0) - dot(P[i], [conj(q) for q in Q[k]]) for k in range(n)]
        for i in range(n)
    ]
    return _mapped(A, B, dt)


def _mapped(A, B, dt):
    """Solve (2I − dt A) X = [2I + dt A, 2 dt B]."""
    n = len(A)
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
