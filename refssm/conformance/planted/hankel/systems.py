"""Planted bugs in Hankel matrices, transfer functions and gramians."""

from functools import reduce

import numpy as np
from scipy import linalg

from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.planted.arithmetic import bfloat16, float16, tf32
from refssm.conformance.planted.planting import (
    SINGLE_GRADIENT,
    Planting,
    instead,
    of_each_result,
    of_result,
)
from refssm.hankel import (
    GRAMIANS,
    GRAMIANS_DISCRETE,
    HANKEL_MATRIX,
    TRANSFER,
    TRANSFER_DISCRETE,
)
from refssm.hankel.gramians import adjoint, outer

HANKEL = Planting(HANKEL_MATRIX, "float32")
HANKEL.usual()
# no argument has the memory of a matrix
HANKEL.bugs = [bug for bug in HANKEL.bugs if bug.name != "returns_input"]


def _at(places):
    """h at index places(i, j, n), or 0 if that is outside."""

    def matrix(right, h):
        n = h.shape[-1]
        k = places(*np.ogrid[:n, :n], n)
        inside = (k >= 0) & (k < n)
        return np.where(inside, h[..., np.where(inside, k, 0)], 0).astype(h.dtype)

    return matrix


HANKEL.plant(
    ("base_one", "h_{i+j+1}: from h_1 on", _at(lambda i, j, n: i + j + 1)),
    ("base_minus_one", "h_{i+j−1}: counted from one", _at(lambda i, j, n: i + j - 1)),
    ("wrapped", "h_{(i+j) mod n}: a circulant", _at(lambda i, j, n: (i + j) % max(n, 1))),
    ("last_repeated", "the last value beyond the end",
     _at(lambda i, j, n: np.minimum(i + j, n - 1))),
    ("toeplitz", "h_{i−j}: a Toeplitz matrix", _at(lambda i, j, n: i - j)),
    ("toeplitz_symmetric", "h_|i−j|", _at(lambda i, j, n: np.abs(i - j))),
    ("toeplitz_upper", "h_{j−i}", _at(lambda i, j, n: j - i)),
    ("reversed", "the last row first", _at(lambda i, j, n: n - 1 - i + j)),
    ("both_reversed", "h_{2(n−1)−i−j}", _at(lambda i, j, n: 2 * (n - 1) - i - j)),
    ("last_dropped", "the antidiagonal zero",
     _at(lambda i, j, n: np.where(i + j < n - 1, i + j, n))),
    ("first_row", "only the first row", _at(lambda i, j, n: np.where(i > 0, n, j))),
    ("doubled", "2h for h", of_result(lambda H: 2 * H)),
    ("product", "h_{i·j}", _at(lambda i, j, n: i * j)),
    ("flushed", "zero beyond 64", _at(lambda i, j, n: np.where(i + j < 64, i + j, n))),
    ("blocks", "a new start every 32 rows", _at(lambda i, j, n: i % 32 + j)),
    ("index_of_a_byte", "i + j in one byte", _at(lambda i, j, n: (i + j) % 256)),
    ("sign", "alternating signs", of_result(lambda H:
     H * (1 - 2 * (np.arange(H.shape[-1]) % 2)).astype(H.dtype))),
)  # fmt: skip
HANKEL.plant(
    ("conjugated", "h*", {"h": np.conj}),
    ("hermitian", "the lower triangle conjugated",
     of_result(lambda H: np.where(np.tri(H.shape[-1], k=-1) > 0, H.conj(), H))),
    ("real_part", "the real part", of_result(lambda H: H.real.astype(H.dtype))),
    by="value[complex64]",
)  # fmt: skip


def _summed(where):
    """For every k, the sum of dH over the entries for which where(i, j, k, n) is true."""

    def vjp(right, dH, h):
        n = h.shape[-1]
        i, j = np.ogrid[:n, :n]
        sums = [np.where(where(i, j, k, n), dH, 0).sum((-2, -1)) for k in range(n)]
        dh = np.stack(sums, -1) if n else dH[..., 0]
        return (unbroadcast(dh, h),)

    return vjp


HANKEL.plant(
    ("index_base", "the next antidiagonal", _summed(lambda i, j, k, n: i + j == k + 1)),
    ("wrapped", "beyond the end too", _summed(lambda i, j, k, n: (i + j) % n == k)),
    ("diagonals", "diagonals for antidiagonals", _summed(lambda i, j, k, n: i - j == k)),
    ("row", "the first row alone", _summed(lambda i, j, k, n: (i == 0) & (j == k))),
    ("upper", "the upper triangle alone", _summed(lambda i, j, k, n: (i + j == k) & (i <= j))),
    ("float16", "in float16", {"h": float16}),
    ("bfloat16", "in bfloat16", {"h": bfloat16}),
    ("sign", "the other sign", {"h": np.negative}),
    ("mean", "the mean of an antidiagonal",
     {"h": lambda g: (g / np.arange(1, g.shape[-1] + 1)).astype(g.dtype)}),
    by="gradient",
)  # fmt: skip
HANKEL.plant(("as_jax", "the conjugate convention", {"h": np.conj}), by="gradient[complex64]")


TRANSFER_BUGS, TRANSFER_DISCRETE_BUGS = (
    Planting(op, "complex64") for op in (TRANSFER, TRANSFER_DISCRETE)
)


def _but_last(x):
    return np.where(np.arange(x.shape[-1]) < x.shape[-1] - 1, x, 0)


for _p, _s in ((TRANSFER_BUGS, "s"), (TRANSFER_DISCRETE_BUGS, "z")):  # the point's name
    _p.usual()
    _p.plant(
        ("D_forgotten", "C (…)⁻¹ B without D", {"D": lambda D: 0 * D}),
        ("D_doubled", "D twice", {"D": lambda D: 2 * D}),
        ("D_subtracted", "−D", {"D": np.negative}),
        ("A_negated", "sI + A", {"A": np.negative}),
        ("A_transposed", "Aᵀ", {"A": lambda A: A.mT}),
        ("A_conjugated", "A*", {"A": np.conj}),
        ("A_adjoint", "Aᴴ", {"A": lambda A: A.mT.conj()}),
        ("A_diagonal", "diag A", {"A": lambda A: np.where(np.eye(A.shape[-1]), A, 0)}),
        ("A_lower", "the lower triangle", {"A": np.tril}),
        ("C_conjugated", "C*", {"C": np.conj}),
        ("B_conjugated", "B*", {"B": np.conj}),
        ("s_conjugated", "the conjugate point", {_s: np.conj}),
        ("s_negated", "the other sign of the point", {_s: np.negative}),
        ("s_shifted", "the next point", {_s: lambda s: np.roll(s, -1, -1)}),
        ("B_for_C", "B and C exchanged", lambda right, A, B, C, D, s: right(A, C, B, D, s)),
        ("last_state", "the last state left out", {"C": _but_last}),
        ("beyond_64", "zero beyond 64 points",
         of_result(lambda G: np.where(np.arange(G.shape[-1]) < 64, G, 0))),
        ("real_part", "the real part", of_result(lambda G: G.real.astype(G.dtype))),
        ("conjugated", "G*", of_result(np.conj)),
        ("doubled", "2 G, of pairs", of_result(lambda G: 2 * G)),
        ("A_in_float16", "A in float16", {"A": float16}),
        ("A_in_tf32", "A in TF32", {"A": tf32}),
        ("s_in_bfloat16", "points in bfloat16", {_s: bfloat16}),
    )  # fmt: skip
    _p.plant(
        ("A_transposed", "dA transposed", {"A": lambda g: g.mT}),
        ("A_sign", "−dA", {"A": np.negative}),
        ("s_sign", "−ds", {_s: np.negative}),
        ("s_conjugated", "ds*", {_s: np.conj}),
        ("D_forgotten", "dD = 0", {"D": lambda g: 0 * g}),
        ("D_doubled", "2 dD", {"D": lambda g: 2 * g}),
        ("B_halved", "dB/2", {"B": lambda g: g / 2}),
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        ("exchanged", "dB and dC exchanged", of_result(lambda dA, dB, dC, *x: (dA, dC, dB, *x))),
        ("last_point", "the last point left out", {"dG": _but_last}),
        by="gradient",
    )  # fmt: skip


def _in_eigenbasis(right, A, B, C, D, s):
    w, V = np.linalg.eig(A.astype(complex))
    left = np.linalg.solve(V + 1e-9 * np.eye(A.shape[-1]), B[..., None])[..., 0]
    v = (C[..., None, :] @ V)[..., 0, :] * left
    G = D[..., None] + (v[..., None, :] / (s[..., None] - w[..., None, :])).sum(-1)
    return G.astype(np.result_type(A, B, C, D, s))


def _truncated(right, A, B, C, D, z):
    x, G = B[..., None, :], D[..., None] + 0 * z
    for _ in range(32):
        G = G + (C[..., None, :] * x).sum(-1)
        x = (A[..., None, :, :] @ x[..., None])[..., 0] / z[..., None]
    return G.astype(np.result_type(A, B, C, D, z))


TRANSFER_BUGS.plant(
    ("discrete", "the discrete one", instead(TRANSFER_DISCRETE.reference)),
    ("in_eigenbasis", "by eigenvectors, of a matrix that may have none", _in_eigenbasis),
    ("frequency_for_s", "iω of what is s already", {"s": lambda s: 1j * s}),
    ("rounded_step", "points in Hertz", {"s": lambda s: 2 * np.pi * s}),
)
TRANSFER_DISCRETE_BUGS.plant(
    ("continuous", "D + C (zI − A)⁻¹ B: one step later", instead(TRANSFER.reference)),
    ("shifted_convention", "the same, divided after", lambda right, A, B, C, D, z:
     D[..., None] + right(A, B, C, 0 * D, z) / z),
    ("inverted", "z for 1/z", {"z": np.reciprocal}),
    ("truncated", "32 terms of the series", _truncated),
)  # fmt: skip


GRAMIAN_BUGS, GRAMIAN_DISCRETE_BUGS = (
    Planting(op, "float32") for op in (GRAMIANS, GRAMIANS_DISCRETE)
)


def both(solve):
    """P and Q by one solver of an equation of A and F, for each member, in its own type."""

    def gramians(A, B, C):
        batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
        along = [np.broadcast_to(x, (*batch, *x.shape[-r:])) for x, r in ((A, 2), (B, 1), (C, 1))]
        pairs = ((along[0], along[1]), (adjoint(along[0]), along[2].conj()))
        types = np.result_type(A, B), np.result_type(A, C)
        return tuple(
            by_member(solve, M, outer(x, x), dtype)
            for (M, x), dtype in zip(pairs, types, strict=True)
        )

    return gramians


def by_member(solve, A, F, dtype):
    """`solve` for each member of a batch, in one type; NaN where an argument is not finite."""
    X = np.full(F.shape, np.nan, dtype)
    if not X.size:
        return X
    for i in np.ndindex(*F.shape[:-2]):
        if np.isfinite(A[i]).all() and np.isfinite(F[i]).all():
            # of one type: SciPy is wrong for a real A beside a complex F (docs/findings.md)
            made = solve(A[i].astype(dtype), F[i].astype(dtype))
            X[i] = made if dtype.kind == "c" else made.real
    return X


def _diagonal(X):
    return np.where(np.eye(X.shape[-1]), X, 0)


def _solved(M, F):
    if len(F) > 8:
        raise NotImplementedError("too large for a Kronecker product")
    return np.linalg.solve(M, F.ravel()).reshape(F.shape)


def _each(solve):
    """Apply `solve` to every A and x along leading axes; it returns a matrix."""
    return np.vectorize(solve, otypes=[complex], signature="(n,n),(n)->(n,n)")


def _without_conjugates(product):
    """A X + X Aᵀ + B Bᵀ = 0, or X = A X Aᵀ + B Bᵀ, by a Kronecker product."""
    solve = _each(lambda A, x: _solved(product(A, np.eye(len(A))), np.outer(x, x)))

    def gramians(right, A, B, C):
        P, Q = right(A, B, C)
        X, Y = solve(np.broadcast_to(A, P.shape), B), solve(np.broadcast_to(A.mT, Q.shape), C)
        return X.astype(P.dtype), Y.astype(Q.dtype)

    return gramians


for _p, _product in (
    (GRAMIAN_BUGS, lambda A, I: -(np.kron(A, I) + np.kron(I, A))),
    (GRAMIAN_DISCRETE_BUGS, lambda A, I: np.kron(I, I) - np.kron(A, A)),
):
    _p.usual()
    _p.plant(
        ("exchanged", "P and Q exchanged", of_result(lambda P, Q: (Q, P))),
        ("transposed", "Aᵀ for A", {"A": lambda A: A.mT.conj()}),  # P of Aᴴ, Q of A
        ("sign_of_P", "−P", of_result(lambda P, Q: (-P, Q))),
        ("sign_of_Q", "−Q", of_result(lambda P, Q: (P, -Q))),
        ("P_doubled", "2P", of_result(lambda P, Q: (2 * P, Q))),
        ("Q_halved", "Q/2", of_result(lambda P, Q: (P, Q / 2))),
        ("P_diagonal", "the diagonal of P", of_result(lambda P, Q: (_diagonal(P), Q))),
        ("P_lower", "one triangle of P", of_result(lambda P, Q: (np.tril(P), Q))),
        ("Q_lower", "one triangle of Q", of_result(lambda P, Q: (P, np.tril(Q)))),
        ("last_row", "the last row of P unwritten", of_result(lambda P, Q:
         (np.where(np.arange(P.shape[-1])[:, None] < P.shape[-1] - 1, P, 0), Q))),
        ("B_for_C", "B for C", lambda right, A, B, C: right(A, B, B + 0 * C)),
        ("A_diagonal", "diag A", {"A": _diagonal}),
        ("A_symmetric", "(A + Aᵀ)/2", {"A": lambda A: (A + A.mT) / 2}),
        ("unit_input", "B of length 1",
         {"B": lambda B: B / np.maximum(np.linalg.norm(B, axis=-1, keepdims=True), 1e-30)}),
        ("A_in_bfloat16", "A in bfloat16", {"A": bfloat16}),
        ("A_in_float16", "A in float16", {"A": float16}),
        ("P_in_float16", "P in float16", of_result(lambda P, Q: (float16(P), Q))),
        ("off_by_a_thousandth", "P too large by 1e-3", of_result(lambda P, Q: (1.001 * P, Q))),
    )  # fmt: skip
    _p.plant(
        ("conjugate_missing", "Aᵀ for Aᴴ, BBᵀ for BBᴴ", _without_conjugates(_product)),
        ("C_not_conjugated", "CᵀC* for CᴴC", {"C": np.conj}),
        ("B_conjugated", "B* for B", {"B": np.conj}),
        ("A_conjugated", "A* for A", {"A": np.conj}),
        ("only_transposed", "Q with Aᵀ for Aᴴ",
         lambda right, A, B, C: (right(A, B, C)[0], right(A.conj(), B, C)[1])),
        ("P_transposed", "Pᵀ", of_result(lambda P, Q: (P.mT, Q))),
        ("real_part", "the real part", of_each_result(lambda X: X.real.astype(X.dtype))),
        by="value[complex64]",
    )  # fmt: skip
    _p.plant(
        ("halved", "without the second term", of_each_result(lambda g: g / 2)),
        # dP for dP + dPᴴ: half of it, and the wrong half of what is not Hermitian
        ("triangle", "one triangle of the cotangents", {"dP": np.tril, "dQ": np.tril}),
        ("of_P_alone", "dQ forgotten", {"dQ": lambda dQ: 0 * dQ}),
        ("of_Q_alone", "dP forgotten", {"dP": lambda dP: 0 * dP}),
        ("transposed", "A for Aᴴ in the adjoint equation", lambda right, dP, dQ, A, *x:
         of_result(lambda dA, dB, dC: (dA.mT.conj(), dB, dC))(right, dP, dQ, A.mT.conj(), *x)),
        ("exchanged", "dB and dC exchanged", of_result(lambda dA, dB, dC: (dA, dC, dB))),
        ("A_transposed", "dA transposed", {"A": lambda g: g.mT}),
        ("sign", "−dA", {"A": np.negative}),
        by="gradient",
    )  # fmt: skip
    _p.plant(
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        ("C_conjugated", "dC*", {"C": np.conj}),
        by="gradient[complex64]",
    )


def _mixed_types(right, A, B, C):
    P, Q = right(A, B, C)
    if np.iscomplexobj(A) or not np.iscomplexobj(B):
        return P, Q
    solve = _each(lambda A, x: linalg.solve_continuous_lyapunov(A, -np.outer(x, x.conj())))
    return solve(np.broadcast_to(A, P.shape), B).astype(P.dtype), Q


def _by_eigenvectors(A, F):
    w, V = np.linalg.eig(A.astype(complex))
    W = np.linalg.inv(V + 1e-9 * np.eye(len(A)))
    return V @ (-(W @ F @ W.conj().T) / (w[:, None] + w.conj())) @ V.conj().T


for _p in (GRAMIAN_BUGS, GRAMIAN_DISCRETE_BUGS):
    _p.plant(SINGLE_GRADIENT, by="gradient[float64]")
GRAMIAN_BUGS.plant(
    ("lyapunov_sign", "A P + P Aᴴ = B Bᴴ", of_each_result(np.negative)),
    ("A_negated", "−A for A", {"A": np.negative}),
    ("discrete", "Stein's equation", instead(GRAMIANS_DISCRETE.reference)),
    ("normal_only", "by eigenvectors, as if A had them all", instead(both(_by_eigenvectors))),
    ("half", "A P = −B Bᴴ/2", of_each_result(lambda X: X / 2)),
)
GRAMIAN_BUGS.plant(("mixed_types", "SciPy's solver for a real A beside a complex B", _mixed_types),
                 by="value[complex128]")  # fmt: skip


def _terms(count):
    """The sum of only `count` terms."""
    return instead(both(lambda A, F: reduce(lambda X, _: F + A @ X @ A.conj().T, range(count), F)))


GRAMIAN_DISCRETE_BUGS.plant(
    ("continuous", "Lyapunov's equation of A − I", lambda right, A, B, C:
     GRAMIANS.reference(A - np.eye(A.shape[-1], dtype=A.dtype), B, C)),
    ("one_step_late", "A P Aᴴ: from the second term on", lambda right, A, B, C:
     of_result(lambda P, Q: (A @ P @ A.mT.conj(), A.mT.conj() @ Q @ A))(right, A, B, C)),
    ("truncated_8", "eight terms", _terms(8)),
    ("truncated_64", "64 terms", _terms(64)),
    ("not_adjoint", "A P A for A P Aᴴ",
     instead(both(lambda A, F: _solved(np.eye(A.size) - np.kron(A, A.T), F)))),
)  # fmt: skip
