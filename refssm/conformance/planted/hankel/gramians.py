"""Planted bugs in gramians and their gradients."""

import numpy as np
from scipy import linalg

from refssm.broadcasting import unbroadcast_each
from refssm.conformance.honest.hankel.gramians import both
from refssm.conformance.planted.arithmetic import bfloat16, float16
from refssm.conformance.planted.planting_old import Planting
from refssm.hankel import GRAMIANS, GRAMIANS_DISCRETE

CONTINUOUS, DISCRETE = (Planting(op, "float32") for op in (GRAMIANS, GRAMIANS_DISCRETE))
names = ("A", "B", "C")


def given(right, **changes):
    """The right function of changed arguments."""

    def form(*args):
        changed = zip(names, args, strict=True)
        return right(*(changes[n](a).astype(a.dtype) if n in changes else a for n, a in changed))

    return form


def after(right, P=None, Q=None):
    """The right result, changed."""

    def form(*args):
        X, Y = right(*args)
        return (P(X).astype(X.dtype) if P else X), (Q(Y).astype(Y.dtype) if Q else Y)

    return form


def _exchanged(right):
    return lambda A, B, C: right(A, B, C)[::-1]


def _dual(right):
    """P of Aᴴ, Q of A: the sides of A exchanged."""
    return lambda A, B, C: right(A.mT.conj(), B, C)


def _diagonal(X):
    return X * np.eye(X.shape[-1])


def _last_row(X):
    return np.where(np.arange(X.shape[-1])[:, None] < X.shape[-1] - 1, X, 0)


def forms(right):
    """Wrong in either time, in real types."""
    return {
        "exchanged": ("P and Q exchanged", _exchanged(right)),
        "transposed": ("Aᵀ for A", _dual(right)),
        "sign_of_P": ("−P", after(right, P=np.negative)),
        "sign_of_Q": ("−Q", after(right, Q=np.negative)),
        "P_doubled": ("2P", after(right, P=lambda X: 2 * X)),
        "Q_halved": ("Q/2", after(right, Q=lambda X: X / 2)),
        "P_diagonal": ("the diagonal of P", after(right, P=_diagonal)),
        "P_lower": ("one triangle of P", after(right, P=np.tril)),
        "Q_lower": ("one triangle of Q", after(right, Q=np.tril)),
        "last_row": ("the last row of P unwritten", after(right, P=_last_row)),
        "B_for_C": ("B for C", lambda A, B, C: right(A, B, B + 0 * C)),
        "A_diagonal": ("diag A", given(right, A=_diagonal)),
        "A_symmetric": ("(A + Aᵀ)/2", given(right, A=lambda A: (A + A.mT) / 2)),
        "unit_input": ("B of length 1", given(right, B=_unit)),
        "A_in_bfloat16": ("A in bfloat16", given(right, A=bfloat16)),
        "A_in_float16": ("A in float16", given(right, A=float16)),
        "P_in_float16": ("P in float16", after(right, P=float16)),
        "off_by_a_thousandth": ("P too large by 1e-3", after(right, P=lambda X: 1.001 * X)),
    }


def _unit(x):
    size = np.sqrt((np.abs(x) ** 2).sum(-1, keepdims=True))
    return x / np.where(size > 0, size, 1)


COMPLEX = {
    "conjugate_missing": ("Aᵀ for Aᴴ, BBᵀ for BBᴴ", None),
    "C_not_conjugated": ("CᵀC* for CᴴC", lambda r: given(r, C=np.conj)),
    "B_conjugated": ("B* for B", lambda r: given(r, B=np.conj)),
    "A_conjugated": ("A* for A", lambda r: given(r, A=np.conj)),
    "only_transposed": ("Q with Aᵀ for Aᴴ", None),
    "P_transposed": ("Pᵀ", lambda r: after(r, P=lambda X: X.mT)),
    "real_part": ("the real part", lambda r: after(r, P=np.real, Q=np.real)),
}


def _without_conjugates(product):
    """A X + X Aᵀ + B Bᵀ = 0, or X = A X Aᵀ + B Bᵀ, by its Kronecker product."""

    def gramians(A, B, C):
        if A.shape[-1] > 8:
            raise NotImplementedError("too large for a Kronecker product")
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


def _one_transposed(right):
    def form(A, B, C):
        return right(A, B, C)[0], right(A.conj(), B, C)[1]

    return form


def _lyapunov(A):
    I = np.eye(len(A))
    return -(np.kron(A, I) + np.kron(I, A))


def _stein(A):
    return np.eye(A.size) - np.kron(A, A)


@CONTINUOUS.forward(
    "mixed_types", "SciPy's solver for a real A beside a complex B", dtype="complex128"
)
def _mixed(A, B, C):
    P, Q = CONTINUOUS.right(A, B, C)
    if np.iscomplexobj(A) or not np.iscomplexobj(B):
        return P, Q
    P, A, B = P.copy(), *(np.broadcast_to(x, s) for x, s in ((A, P.shape), (B, P.shape[:-1])))
    for i in np.ndindex(*P.shape[:-2]):
        P[i] = linalg.solve_continuous_lyapunov(A[i], -np.outer(B[i], B[i].conj()))
    return P, Q


def _steps(count):
    """A sum of so many terms."""

    def truncated(A, F):
        X = F
        for _ in range(count):
            X = F + A @ X @ A.conj().T
        return X

    return both(truncated)


def _by_eigenvectors(A, F):
    w, V = np.linalg.eig(A.astype(complex))
    W = np.linalg.inv(V + 1e-9 * np.eye(len(A)))
    return V @ (-(W @ F @ W.conj().T) / (w[:, None] + w.conj())) @ V.conj().T


def _late(A, B, C):
    P, Q = DISCRETE.right(A, B, C)
    return A @ P @ A.mT.conj(), A.mT.conj() @ Q @ A


def _shifted(A, B, C):
    return CONTINUOUS.right(A - np.eye(A.shape[-1], dtype=A.dtype), B, C)


def _not_transposed(A, F):
    M = np.eye(A.size) - np.kron(A, A.T)
    return np.linalg.solve(M, F.ravel()).reshape(F.shape)


def _kept_small(solve):
    def small(A, F):
        if len(A) > 8:
            raise NotImplementedError("too large for a Kronecker product")
        return solve(A, F)

    return small


ONLY = {
    CONTINUOUS: {
        "lyapunov_sign": ("A P + P Aᴴ = B Bᴴ", after(CONTINUOUS.right, np.negative, np.negative)),
        "A_negated": ("−A for A", given(CONTINUOUS.right, A=np.negative)),
        "discrete": ("Stein's equation", DISCRETE.right),
        "normal_only": ("by eigenvectors, as if A had them all", both(_by_eigenvectors)),
        "half": ("A P = −B Bᴴ/2", after(CONTINUOUS.right, lambda X: X / 2, lambda X: X / 2)),
    },
    DISCRETE: {
        "continuous": ("Lyapunov's equation of A − I", _shifted),
        "one_step_late": ("A P Aᴴ: from the second term on", _late),
        "truncated_8": ("eight terms", _steps(8)),
        "truncated_64": ("64 terms", _steps(64)),
        "not_adjoint": ("A P A for A P Aᴴ", both(_kept_small(_not_transposed))),
    },
}
PLAIN = {
    CONTINUOUS: _without_conjugates(_lyapunov),
    DISCRETE: _without_conjugates(_stein),
}


def changed(vjp, change):
    """The right gradients, changed together."""
    return lambda *args: change(*vjp(*args))


def unsymmetric(vjp):
    """dP for dP + dPᴴ: half of it, and the wrong half of what is not Hermitian."""
    return lambda dP, dQ, *args: vjp(np.tril(dP), np.tril(dQ), *args)


def without_Q(vjp):
    """The gradient of P alone."""
    return lambda dP, dQ, *args: vjp(dP, 0 * dQ, *args)


def without_P(vjp):
    """The gradient of Q alone."""
    return lambda dP, dQ, *args: vjp(0 * dP, dQ, *args)


def of_transposed(vjp):
    """The adjoint equation with A for Aᴴ."""

    def wrong(dP, dQ, A, B, C):
        dA, dB, dC = vjp(dP, dQ, A.mT.conj(), B, C)
        return unbroadcast_each((dA.mT.conj(), dB, dC), (A, B, C))

    return wrong


def plant(planting):
    """All of them in one operator."""
    right, vjp = planting.right, planting.right_vjp
    planting.usual()
    for name, (what, form) in (forms(right) | ONLY[planting]).items():
        planting.forward(name, what)(form)
    special = {"conjugate_missing": PLAIN[planting], "only_transposed": _one_transposed(right)}
    for name, (what, made) in COMPLEX.items():
        planting.forward(name, what, dtype="complex64")(made(right) if made else special[name])
    for name, what, wrong in (
        ("halved", "without the second term", lambda *args: tuple(g / 2 for g in vjp(*args))),
        ("triangle", "one triangle of the cotangents", unsymmetric(vjp)),
        ("of_P_alone", "dQ forgotten", without_Q(vjp)),
        ("of_Q_alone", "dP forgotten", without_P(vjp)),
        ("transposed", "A for Aᴴ in the adjoint equation", of_transposed(vjp)),
        ("exchanged", "dB and dC exchanged", changed(vjp, lambda A, B, C: (A, C, B))),
        ("A_transposed", "dA transposed", changed(vjp, lambda A, B, C: (A.mT, B, C))),
        ("sign", "−dA", changed(vjp, lambda A, B, C: (-A, B, C))),
    ):
        planting.gradient(name, what)(wrong)
    planting.gradient("as_jax", "the conjugate convention", "complex64")(
        changed(vjp, lambda *gradients: tuple(g.conj() for g in gradients))
    )
    planting.gradient("C_conjugated", "dC*", "complex64")(
        changed(vjp, lambda A, B, C: (A, B, C.conj()))
    )


for _planting in (CONTINUOUS, DISCRETE):
    plant(_planting)

DEVIATIONS = [*CONTINUOUS.bugs, *DISCRETE.bugs]
