"""Planted bugs in gramians and their gradients."""

from functools import reduce

import numpy as np
from scipy import linalg

from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import Planting, instead, of_each_result, of_result
from refssm.hankel import GRAMIANS, GRAMIANS_DISCRETE
from refssm.hankel.gramians import adjoint, outer

CONTINUOUS, DISCRETE = (Planting(op, "float32") for op in (GRAMIANS, GRAMIANS_DISCRETE))


def both(solve):
    """P and Q by one solver of an equation of A and F, for each member, in its own type."""

    def gramians(A, B, C):
        batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
        along = [np.broadcast_to(x, (*batch, *x.shape[-r:])) for x, r in ((A, 2), (B, 1), (C, 1))]
        pairs = ((along[0], along[1]), (adjoint(along[0]), along[2].conj()))
        types = np.result_type(A, B), np.result_type(A, C)
        return tuple(
            by_member(solve, M, outer(x, x), dtype) for (M, x), dtype in zip(pairs, types, strict=True)
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
    (CONTINUOUS, lambda A, I: -(np.kron(A, I) + np.kron(I, A))),
    (DISCRETE, lambda A, I: np.kron(I, I) - np.kron(A, A)),
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


CONTINUOUS.plant(
    ("lyapunov_sign", "A P + P Aᴴ = B Bᴴ", of_each_result(np.negative)),
    ("A_negated", "−A for A", {"A": np.negative}),
    ("discrete", "Stein's equation", instead(GRAMIANS_DISCRETE.reference)),
    ("normal_only", "by eigenvectors, as if A had them all", instead(both(_by_eigenvectors))),
    ("half", "A P = −B Bᴴ/2", of_each_result(lambda X: X / 2)),
)
CONTINUOUS.plant(("mixed_types", "SciPy's solver for a real A beside a complex B", _mixed_types),
                 by="value[complex128]")  # fmt: skip


def _terms(count):
    """The sum of only `count` terms."""
    return instead(both(lambda A, F: reduce(lambda X, _: F + A @ X @ A.conj().T, range(count), F)))


DISCRETE.plant(
    ("continuous", "Lyapunov's equation of A − I", lambda right, A, B, C:
     GRAMIANS.reference(A - np.eye(A.shape[-1], dtype=A.dtype), B, C)),
    ("one_step_late", "A P Aᴴ: from the second term on", lambda right, A, B, C:
     of_result(lambda P, Q: (A @ P @ A.mT.conj(), A.mT.conj() @ Q @ A))(right, A, B, C)),
    ("truncated_8", "eight terms", _terms(8)),
    ("truncated_64", "64 terms", _terms(64)),
    ("not_adjoint", "A P A for A P Aᴴ",
     instead(both(lambda A, F: _solved(np.eye(A.size) - np.kron(A, A.T), F)))),
)  # fmt: skip
