"""Honest normal plus low rank forms: other eigensolvers, phases, orders and low-rank factors."""

import numpy as np
from scipy.linalg import block_diag, hessenberg, schur

from honest import Honest
from refssm.conformance.planted.nplr import SYSTEMS
from refssm.nplr import NORMAL_LEGS, NPLR_LEGS


def hermitian(S):
    """Eigenvectors of −iS, with LAPACK's phases."""
    return np.linalg.eigh(-1j * S)


def upper_half_first(S):
    """As `hermitian`, with Im w > 0 first."""
    frequencies, V = hermitian(S)
    order = np.concatenate([np.arange(len(S))[len(S) // 2 :], np.arange(len(S) // 2)])
    return frequencies[order], V[:, order]


def general(S):
    """Eigenvectors of S by the solver for general matrices, made orthonormal."""
    values, V = np.linalg.eig(S.astype(complex))
    return np.imag(values), np.linalg.qr(V)[0]


def complex_schur(S):
    """Schur's form: the triangular factor of a normal matrix is diagonal."""
    T, V = schur(S, output="complex")[:2]
    return np.imag(np.diag(T)), V


def real_schur(S):
    """Conjugate pairs from the 2 × 2 blocks of the real Schur form."""
    T, Z = schur(S, output="real")[:2]
    frequencies, vectors, i = [], [], 0
    while i < len(S):
        if i + 1 < len(S) and T[i + 1, i]:
            t, v = (T[i + 1, i] - T[i, i + 1]) / 2, (Z[:, i] - 1j * Z[:, i + 1]) / np.sqrt(2)
            frequencies, vectors, i = [*frequencies, t, -t], [*vectors, v, v.conj()], i + 2
        else:
            frequencies, vectors, i = [*frequencies, 0.0], [*vectors, Z[:, i] + 0j], i + 1
    return np.array(frequencies), np.stack(vectors, axis=1)


def singular_values(S):
    """Tridiagonal by reflections; it then takes even places to odd ones and back."""
    T, Q = hessenberg(S, calc_q=True)
    C = (T - T.T)[1::2, ::2] / 2
    Y, s, X = np.linalg.svd(C)
    X, Y = Q[:, ::2] @ X.T, Q[:, 1::2] @ Y
    pairs = (X[:, : len(s)] - 1j * Y) / np.sqrt(2)
    real = X[:, len(s) :]
    frequencies = np.concatenate([s, np.zeros(real.shape[1]), -s])
    return frequencies, np.concatenate([pairs, real, pairs.conj()], axis=1)


SOLVERS = (hermitian, upper_half_first, general, complex_schur, real_schur, singular_values)


def solved(system, solver):
    """A + p pᵀ, its eigenvectors, and p and b in the basis of these."""

    def decomposition(*, n, **numbers):
        A, p, b = system(n=n, **numbers)
        N = A + p @ p.T
        real_part = np.trace(N) / n
        frequencies, V = solver(N - real_part * np.eye(n))
        back = V.conj().T
        return real_part + 1j * frequencies, back @ p, back @ b, V.astype(complex)

    return decomposition


def eigenvalues_with_rounded_real_parts(system):
    """All of N by the solver for general matrices: real parts have rounding errors."""

    def decomposition(*, n, **numbers):
        A, p, b = system(n=n, **numbers)
        w, V = np.linalg.eig((A + p @ p.T).astype(complex))
        V = np.linalg.qr(V)[0]
        return w, V.conj().T @ p, V.conj().T @ b, V

    return decomposition


def other_phases(op):
    """Each eigenvector times a different phase."""

    def decomposition(**sizes):
        w, P, B, V = op.reference(**sizes)
        turn = np.exp(1j * np.arange(len(w)) ** 2)
        return w, turn.conj()[:, None] * P, turn.conj() * B, V * turn

    return decomposition


def another_order(op):
    """The modes in a random order."""

    def decomposition(**sizes):
        w, P, B, V = op.reference(**sizes)
        order = np.random.default_rng(0).permutation(len(w))
        return w[order], P[order], B[order], V[:, order]

    return decomposition


def turned_low_rank(op):
    """P times a unitary matrix of its rank."""

    def decomposition(**sizes):
        w, P, B, V = op.reference(**sizes)
        rng, r = np.random.default_rng(1), P.shape[-1]
        Q = np.linalg.qr(rng.standard_normal((r, r)) + 1j * rng.standard_normal((r, r)))[0]
        return w, P @ Q, B, V

    return decomposition


def modes_of_blocks(solver):
    """The modes of one block by `solver`, repeated for each block."""

    def modes(*, n, blocks):
        frequencies, V = solver(NORMAL_LEGS.reference(n=n // blocks) + np.eye(n // blocks) / 2)
        return np.tile(-0.5 + 1j * frequencies, blocks), block_diag(*[V] * blocks) + 0j

    return modes


def from_the_measure(*, n):
    """A + p pᵀ with p_i = √(i+½)."""
    A, p, _ = SYSTEMS[NPLR_LEGS](n=n)
    return A + p @ p.T


def normal_row_by_row(*, n):
    """Three cases in two loops."""
    N = np.empty((n, n))
    for i in range(n):
        for k in range(n):
            sign = (i < k) - (i > k)
            N[i, k] = sign * np.sqrt(i + 0.5) * np.sqrt(k + 0.5) if sign else -0.5
    return N


def product_of_roots(*, n):
    """The skew part from an outer product of rounded roots."""
    q = np.sqrt(np.arange(n) + 0.5)
    lower = np.tril(np.outer(q, q), -1)
    return lower.T - lower - np.eye(n) / 2


IMPLEMENTATIONS = [
    *(
        Honest(op.name, name, form)
        for op, system in SYSTEMS.items()
        for name, form in (
            *((s.__name__, solved(system, s)) for s in SOLVERS),
            ("rounded_real_parts", eigenvalues_with_rounded_real_parts(system)),
            ("other_phases", other_phases(op)),
            ("another_order", another_order(op)),
            ("turned_low_rank", turned_low_rank(op)),
        )
    ),
    *(Honest("block_diagonal", s.__name__, modes_of_blocks(s)) for s in SOLVERS),
    Honest("normal_legs", "from_the_measure", from_the_measure),
    Honest("normal_legs", "row_by_row", normal_row_by_row),
    Honest("normal_legs", "product_of_roots", product_of_roots),
]
