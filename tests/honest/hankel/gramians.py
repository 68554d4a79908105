"""Honest gramians: Kronecker products, SciPy's solvers, eigenvectors, doubling, other orders."""

import numpy as np
from scipy import linalg

from honest import Honest
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.conformance.planted.hankel.systems import both, by_member
from refssm.hankel import GRAMIANS, GRAMIANS_DISCRETE
from refssm.hankel.gramians import adjoint, outer

WIDER = {np.dtype(np.float32): np.float64, np.dtype(np.float64): np.longdouble}
LARGEST = 12  # states: a Kronecker product has their fourth power of entries


def _small(A):
    if len(A) > LARGEST:
        raise NotImplementedError("too large for a Kronecker product")


def kronecker(A, F):
    """(A ⊗ I + I ⊗ A*) vec X = −vec F."""
    _small(A)
    I = np.eye(len(A), dtype=A.dtype)
    M = np.kron(A, I) + np.kron(I, A.conj())
    return np.linalg.solve(M, -F.ravel()).reshape(A.shape)


def kronecker_discrete(A, F):
    """(I − A ⊗ A*) vec X = vec F."""
    _small(A)
    M = np.eye(A.size, dtype=A.dtype) - np.kron(A, A.conj())
    return np.linalg.solve(M, F.ravel()).reshape(A.shape)


def by_scipy(A, F):
    """scipy.linalg.solve_continuous_lyapunov."""
    return linalg.solve_continuous_lyapunov(A, -F)


def by_scipy_discrete(A, F):
    """scipy.linalg.solve_discrete_lyapunov, which uses a Kronecker product."""
    _small(A)
    return linalg.solve_discrete_lyapunov(A, F, method="direct")


def backwards_numbered(solve):
    """The solver with the states in reverse order."""
    return lambda A, F: solve(A[::-1, ::-1], F[::-1, ::-1])[::-1, ::-1]


def real_schur(A, F):
    """Sylvester's equation by the Schur forms of A and of Aᴴ."""
    return linalg.solve_sylvester(A, adjoint(A), -F)


def bilinear(A, F):
    """The discrete system from the bilinear map with dt = 2/‖A‖, then doubling."""
    a, I = np.linalg.norm(A), np.eye(len(A), dtype=A.dtype)
    N = np.linalg.inv(a * I - A)
    return doubled(N @ (a * I + A), 2 * a * (N @ F @ adjoint(N)))


def doubled(A, F):
    """Σ_k A^k F A^kᴴ with twice as many terms each time; A^(2^j) is off by 2^j roundings."""
    while np.linalg.norm(A) > np.finfo(A.dtype).eps:
        A, F = A @ A, F + A @ F @ adjoint(A)
    return F


def widened(solve):
    """A solver in the next wider type."""
    return lambda A, F: solve(*(X.astype(np.result_type(WIDER[X.real.dtype], X)) for X in (A, F)))


def eigenvectors(A, F):
    """V (−F̃_ij/(λ_i + λ_j)) Vᴴ, F̃ = Vᴴ F V, for a Hermitian A."""
    w, V = np.linalg.eigh(A)
    return V @ (-(adjoint(V) @ F @ V) / (w[:, None] + w)) @ adjoint(V)


def eigenvectors_discrete(A, F):
    """V (F̃_ij/(1 − λ_i λ_j)) Vᴴ for a Hermitian A."""
    w, V = np.linalg.eigh(A)
    return V @ ((adjoint(V) @ F @ V) / (1 - w[:, None] * w)) @ adjoint(V)


def hermitian(x):
    """The case with (A + Aᴴ)/2 for A, shifted left until its rows show that it is stable."""
    A = x["A"].astype(np.result_type(x["A"], np.float64))
    H = (A + adjoint(A)) / 2
    I = np.eye(A.shape[-1])
    rows = ((H * I).sum(-1).real + np.abs(H * (1 - I)).sum(-1)).max(-1, initial=-1)
    shift = np.where(np.isfinite(rows), np.maximum(np.ceil(rows + 1 / 16), 0), 0)
    return {**x, "A": (H - shift[..., None, None] * I).astype(x["A"].dtype)}


def hermitian_discrete(x):
    """The case with (A + Aᴴ)/2 for A, divided until its absolute row sums are below 1."""
    A = x["A"].astype(np.result_type(x["A"], np.float64))
    H = (A + adjoint(A)) / 2
    rows = np.abs(H).sum(-1).max(-1, initial=0)
    factor = np.where(rows > 0.99, 0.5 ** np.ceil(np.log2(np.maximum(rows, 1)) + 0.1), 1)
    return {**x, "A": (H * factor[..., None, None]).astype(x["A"].dtype)}


def short(x):
    """The case with A halved until no row sum exceeds ¾: doubling's residual is 1/(1 − ‖A‖²)."""
    rows = np.abs(x["A"]).sum(-1).max(-1, initial=0)
    halvings = np.ceil(np.log2(np.where(rows > 0.75, rows, 0.75) / 0.75))
    return {**x, "A": (x["A"] * 0.5 ** halvings[..., None, None]).astype(x["A"].dtype)}


def in_double(op):
    """The reference in double precision, rounded at the end."""

    def form(A, B, C):
        wide = [x.astype(np.result_type(x, np.float64)) for x in (A, B, C)]
        types = np.result_type(A, B), np.result_type(A, C)
        return tuple(X.astype(t) for X, t in zip(op.reference(*wide), types, strict=True))

    return form


def halves(solve, product):
    """A VJP that solves the adjoint equation for dP and adds its adjoint, not for dP + dPᴴ."""

    def vjp(dP, dQ, A, B, C):
        row = C.conj()
        P, Q = solve(A, outer(B, B)), solve(adjoint(A), outer(row, row))
        S, V = solve(adjoint(A), dP), solve(A, dQ)
        dA = product(S, A, P) + product(adjoint(S), A, P)
        dA = dA + adjoint(product(V, adjoint(A), Q) + product(adjoint(V), adjoint(A), Q))
        dB = ((S + adjoint(S)) @ B[..., None])[..., 0]
        dC = ((V + adjoint(V)) @ row[..., None])[..., 0].conj()
        return unbroadcast_each((dA, dB, dC), (A, B, C))

    return vjp


def of_batch(solve):
    """A solver of one equation, applied to a batch."""

    def batched(A, F):
        batch = np.broadcast_shapes(A.shape[:-2], F.shape[:-2])
        A, F = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (A, F))
        return by_member(solve, A, F, np.result_type(A, F))

    return batched


SOLVERS = {
    "gramians": {
        "kronecker": kronecker,
        "by_scipy": by_scipy,
        "real_schur": real_schur,
        "backwards_numbered": backwards_numbered(by_scipy),
        "bilinear": bilinear,
    },
    "gramians_discrete": {
        "kronecker": kronecker_discrete,
        "by_scipy": by_scipy_discrete,
        "doubled": doubled,
        "backwards_numbered": backwards_numbered(widened(doubled)),
    },
}
GRADIENTS = {
    ("gramians", "by_scipy"): halves(of_batch(by_scipy), lambda S, A, P: S @ P),
    ("gramians_discrete", "doubled"): halves(of_batch(doubled), lambda S, A, P: S @ A @ P),
}
ONLY = {"doubled": short}
NORMAL = {
    GRAMIANS: (eigenvectors, hermitian),
    GRAMIANS_DISCRETE: (eigenvectors_discrete, hermitian_discrete),
}

GRAMIANS_BOTH = [
    *(
        Honest(op, n, both(f), GRADIENTS.get((op, n)), only=ONLY.get(n))
        for op, solvers in SOLVERS.items()
        for n, f in solvers.items()
    ),
    *(Honest(op.name, "in_double", in_double(op)) for op in NORMAL),
    *(Honest(op.name, "eigenvectors", both(f), only=only) for op, (f, only) in NORMAL.items()),
]
