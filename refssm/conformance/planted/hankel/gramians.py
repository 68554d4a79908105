"""Planted bugs in gramians and their gradients."""

import numpy as np
from scipy import linalg

from refssm.broadcasting import unbroadcast_each
from refssm.conformance.honest.hankel.gramians import both
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting import Planting, instead, of_each_result, of_result
from refssm.hankel import GRAMIANS, GRAMIANS_DISCRETE

CONTINUOUS, DISCRETE = (Planting(op, "float32") for op in (GRAMIANS, GRAMIANS_DISCRETE))


def of_P(change):
    """P changed, Q right."""
    return of_result(lambda P, Q: (change(P), Q))


def of_Q(change):
    """Q changed, P right."""
    return of_result(lambda P, Q: (P, change(Q)))


def _diagonal(X):
    return np.where(np.eye(X.shape[-1]), X, 0)


def _last_row_unwritten(X):
    return np.where(np.arange(X.shape[-1])[:, None] < X.shape[-1] - 1, X, 0)


def _unit(x):
    size = np.sqrt((np.abs(x) ** 2).sum(-1, keepdims=True))
    return x / np.where(size > 0, size, 1)


def of_transposed(right, dP, dQ, A, B, C):
    """The adjoint equation with A for Aᴴ."""
    dA, dB, dC = right(dP, dQ, A.mT.conj(), B, C)
    return unbroadcast_each((dA.mT.conj(), dB, dC), (A, B, C))


for _p in (CONTINUOUS, DISCRETE):
    _p.usual()
    _p.plant(
        ("exchanged", "P and Q exchanged", of_result(lambda P, Q: (Q, P))),
        ("transposed", "Aᵀ for A", {"A": lambda A: A.mT.conj()}),  # P of Aᴴ, Q of A
        ("sign_of_P", "−P", of_P(np.negative)),
        ("sign_of_Q", "−Q", of_Q(np.negative)),
        ("P_doubled", "2P", of_P(lambda P: 2 * P)),
        ("Q_halved", "Q/2", of_Q(lambda Q: Q / 2)),
        ("P_diagonal", "the diagonal of P", of_P(_diagonal)),
        ("P_lower", "one triangle of P", of_P(np.tril)),
        ("Q_lower", "one triangle of Q", of_Q(np.tril)),
        ("last_row", "the last row of P unwritten", of_P(_last_row_unwritten)),
        ("B_for_C", "B for C", lambda right, A, B, C: right(A, B, B + 0 * C)),
        ("A_diagonal", "diag A", {"A": _diagonal}),
        ("A_symmetric", "(A + Aᵀ)/2", {"A": lambda A: (A + A.mT) / 2}),
        ("unit_input", "B of length 1", {"B": _unit}),
        ("A_in_bfloat16", "A in bfloat16", {"A": bfloat16}),
        ("A_in_float16", "A in float16", {"A": float16}),
        ("P_in_float16", "P in float16", of_P(float16)),
        ("off_by_a_thousandth", "P too large by 1e-3", of_P(lambda P: 1.001 * P)),
    )
    _p.plant(
        ("C_not_conjugated", "CᵀC* for CᴴC", {"C": np.conj}),
        ("B_conjugated", "B* for B", {"B": np.conj}),
        ("A_conjugated", "A* for A", {"A": np.conj}),
        ("only_transposed", "Q with Aᵀ for Aᴴ",
         lambda right, A, B, C: (right(A, B, C)[0], right(A.conj(), B, C)[1])),
        ("P_transposed", "Pᵀ", of_P(lambda P: P.mT)),
        ("real_part", "the real part", of_each_result(lambda X: X.real.astype(X.dtype))),
        by="value[complex64]",
    )  # fmt: skip
    _p.plant(
        ("halved", "without the second term", of_each_result(lambda g: g / 2)),
        # dP for dP + dPᴴ: half of it, and the wrong half of what is not Hermitian
        ("triangle", "one triangle of the cotangents", {"dP": np.tril, "dQ": np.tril}),
        ("of_P_alone", "dQ forgotten", {"dQ": lambda dQ: 0 * dQ}),
        ("of_Q_alone", "dP forgotten", {"dP": lambda dP: 0 * dP}),
        ("transposed", "A for Aᴴ in the adjoint equation", of_transposed),
        ("exchanged", "dB and dC exchanged", of_result(lambda dA, dB, dC: (dA, dC, dB))),
        ("A_transposed", "dA transposed", {"A": lambda g: g.mT}),
        ("sign", "−dA", {"A": np.negative}),
        by="gradient",
    )
    _p.plant(
        ("as_jax", "the conjugate convention", of_each_result(np.conj)),
        ("C_conjugated", "dC*", {"C": np.conj}),
        by="gradient[complex64]",
    )


def _refuse_large(A):
    if A.shape[-1] > 8:
        raise NotImplementedError("too large for a Kronecker product")


def _without_conjugates(product):
    """A X + X Aᵀ + B Bᵀ = 0, or X = A X Aᵀ + B Bᵀ, by its Kronecker product."""

    def gramians(right, A, B, C):
        _refuse_large(A)
        pairs = ((A, B), (A.mT, C))
        types = np.result_type(A, B), np.result_type(A, C)
        batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1])
        made = []
        for (M, x), dtype in zip(pairs, types, strict=True):
            F = x[..., :, None] * x[..., None, :]
            X = np.zeros((*batch, *F.shape[-2:]), dtype)
            M, F = np.broadcast_to(M, X.shape), np.broadcast_to(F, X.shape)
            for i in np.ndindex(*batch):
                X[i] = np.linalg.solve(product(M[i]), F[i].ravel()).reshape(F[i].shape)
            made.append(X)
        return tuple(made)

    return gramians


def _lyapunov(A):
    I = np.eye(len(A))
    return -(np.kron(A, I) + np.kron(I, A))


def _stein(A):
    return np.eye(A.size) - np.kron(A, A)


for _p, _product in ((CONTINUOUS, _lyapunov), (DISCRETE, _stein)):
    _p.plant(
        ("conjugate_missing", "Aᵀ for Aᴴ, BBᵀ for BBᴴ", _without_conjugates(_product)),
        by="value[complex64]",
    )


@CONTINUOUS.bug(
    "mixed_types", "SciPy's solver for a real A beside a complex B", by="value[complex128]"
)
def _(right, A, B, C):
    P, Q = right(A, B, C)
    if np.iscomplexobj(A) or not np.iscomplexobj(B):
        return P, Q
    P, A, B = P.copy(), *(np.broadcast_to(x, s) for x, s in ((A, P.shape), (B, P.shape[:-1])))
    for i in np.ndindex(*P.shape[:-2]):
        P[i] = linalg.solve_continuous_lyapunov(A[i], -np.outer(B[i], B[i].conj()))
    return P, Q


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


def _terms(count):
    """A sum of so many terms."""

    def truncated(A, F):
        X = F
        for _ in range(count):
            X = F + A @ X @ A.conj().T
        return X

    return instead(both(truncated))


def _late(right, A, B, C):
    P, Q = right(A, B, C)
    return A @ P @ A.mT.conj(), A.mT.conj() @ Q @ A


def _not_adjoint(A, F):
    _refuse_large(A)
    return np.linalg.solve(np.eye(A.size) - np.kron(A, A.T), F.ravel()).reshape(F.shape)


DISCRETE.plant(
    ("continuous", "Lyapunov's equation of A − I", lambda right, A, B, C:
     GRAMIANS.reference(A - np.eye(A.shape[-1], dtype=A.dtype), B, C)),
    ("one_step_late", "A P Aᴴ: from the second term on", _late),
    ("truncated_8", "eight terms", _terms(8)),
    ("truncated_64", "64 terms", _terms(64)),
    ("not_adjoint", "A P A for A P Aᴴ", instead(both(_not_adjoint))),
)  # fmt: skip
