"""Enclosures for refssm.hankel: determinants, and matrix equations as linear systems."""

from flint import acb, arb, arb_mat

from refssm.enclosure.algebra import column, conj, dot, matrix


def hankel_matrix(h):
    """Row i is h from its i-th entry on, then zeros."""
    return [[*h[i:], *[0] * i] for i in range(len(h))]


def markov_parameters(A, B, C, *, l):
    """(C A^k) B."""
    if not A:
        return [0] * l
    A_T, row, h = matrix(A).transpose(), column(C), []
    for _ in range(l):
        h.append(dot(row.entries(), B))
        row = A_T * row
    return h


def transfer(A, B, C, D, s):
    """D + det(sI − A + B C)/det(sI − A) − 1."""
    return [D + _ratio([[-a for a in row] for row in A], s_l, B, C) for s_l in s]


def transfer_discrete(A, B, C, D, z):
    """D + det(zI − A + z B C)/det(zI − A) − 1: C (I − A/z)⁻¹ B = C (zI − A)⁻¹ z B."""
    return [D + _ratio([[-a for a in row] for row in A], z_l, [z_l * b for b in B], C) for z_l in z]


def _ratio(minus_A, s, B, C):
    """C (sI − A)⁻¹ B, from the determinant after a rank-one change."""
    n = len(minus_A)
    if not n:
        return 0
    M = matrix([[x + (s if i == k else 0) for k, x in enumerate(r)] for i, r in enumerate(minus_A)])
    return (M + column(B) * column(C).transpose()).det() / M.det() - 1


def gramians(A, B, C):
    """(A ⊗ I + I ⊗ A*) vec P = −vec B Bᴴ; the same with Aᴴ and Cᴴ for Q."""
    return _both(A, B, C, lambda a, b, same_i, same_j: a * same_j + conj(b) * same_i, -1)


def gramians_discrete(A, B, C):
    """(I − A ⊗ A*) vec P = vec B Bᴴ; the same with Aᴴ and Cᴴ for Q."""
    return _both(A, B, C, lambda a, b, same_i, same_j: same_i * same_j - a * conj(b), 1)


def h2_norm(A, B, C):
    """√(Bᴴ Q B), from the observability gramian."""
    _, Q = gramians(A, B, C)
    return _root(dot([conj(b) for b in B], [dot(row, B) for row in Q]))


def h2_norm_diagonal(w, B, C):
    """√(Σ_k |Σ_j v_j ψ_k(w_j)|²): the coefficients of the response in orthonormal functions.

    ψ_k(w) = √(−2 Re w_k)/(w + w_k*) · Π_{m<k} (w − w_m)/(w + w_m*).
    """
    parts, energy = [b * c for b, c in zip(B, C, strict=True)], acb(0)
    for pole in w:
        sums = [x + conj(pole) for x in w]
        size = abs(dot(parts, [1 / s for s in sums]))
        energy += -2 * acb(pole).real * size * size
        parts = [v * (x - pole) / s for v, x, s in zip(parts, w, sums, strict=True)]
    return _root(energy)


def _root(energy):
    """√ of a real number that is at least 0."""
    return acb(energy).real.nonnegative_part().sqrt()


def _both(A, B, C, entry, sign):
    if not A:
        return [], []
    n = len(A)
    A_H = [[conj(A[k][i]) for k in range(n)] for i in range(n)]
    return _solved(A, B, entry, sign), _solved(A_H, [conj(c) for c in C], entry, sign)


def _solved(A, B, entry, sign):
    """The Hermitian X of one equation: its unknowns are Re X_ij, i ≤ j, and Im X_ij, i < j."""
    n, real = len(A), all(isinstance(x, arb) for row in [B, *A] for x in row)
    upper = [(i, j) for i in range(n) for j in range(i, n)]
    strict = [] if real else [(i, j) for i, j in upper if i < j]
    rows, side = [], []
    for i, j in upper:
        K = [
            [entry(A[i][k], A[j][m], int(i == k), int(j == m)) for m in range(n)] for k in range(n)
        ]
        row = [acb(K[k][m] + K[m][k] if k < m else K[k][k]) for k, m in upper]
        row += [acb(0, 1) * (K[k][m] - K[m][k]) for k, m in strict]
        total = acb(sign * B[i] * conj(B[j]))
        rows.append([x.real for x in row])
        side.append([total.real])
        if (i, j) in strict:
            rows.append([x.imag for x in row])
            side.append([total.imag])
    x = arb_mat(rows).solve(arb_mat(side)).entries()
    parts = dict(zip(upper + [(j, i) for i, j in strict], x, strict=True))
    return [[_entry(parts, i, j) for j in range(n)] for i in range(n)]


def _entry(parts, i, j):
    """X_ij, from the parts: real ones at (i, j), i ≤ j, and imaginary ones at (j, i)."""
    if i > j:
        return conj(_entry(parts, j, i))
    return acb(parts[i, j], parts[j, i]) if i < j and (j, i) in parts else parts[i, j]
