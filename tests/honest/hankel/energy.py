"""Honest H2 norms: the other gramian, roots of gramians, orthonormal functions, in double."""

import numpy as np

from honest import Honest
from honest.hankel.dense import by_kronecker, by_scipy
from refssm._numerics.balance import square_root
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.hankel import H2_NORM, H2_NORM_DIAGONAL


def from_the_output(P, Q, B, C):
    """√(Bᴴ Q B)."""
    del P, C
    return np.sqrt(max((B.conj() @ Q @ B).real, 0))


def length_of_a_row(P, Q, B, C):
    """‖C L‖ for P = L Lᴴ."""
    del Q, B
    return np.linalg.norm(C @ square_root((P + P.conj().T) / 2))


def by_members(solve, energy):
    """Each member of the batch by itself; NaN where an argument has NaN."""

    def form(A, B, C):
        shape, n = np.broadcast_shapes(A.shape[:-2], B.shape[:-1], C.shape[:-1]), A.shape[-1]
        h = np.full(shape, np.nan, np.finfo(np.result_type(A, B, C)).dtype)
        cores = ((A, (n, n)), (B, (n,)), (C, (n,)))
        for i in np.ndindex(*shape):
            a, b, c = (np.broadcast_to(x, (*shape, *core))[i] for x, core in cores)
            if all(np.isfinite(x).all() for x in (a, b, c)):
                P = solve(a, np.outer(b, b.conj()))
                h[i] = energy(P, solve(a.conj().T, np.outer(c.conj(), c)), b, c) if n else 0
        return h

    return form


def turned_round(dh, A, B, C):
    """The VJP by the adjoint system (Aᴴ, Cᴴ, Bᴴ), which has the same norm."""
    dA, dB, dC = H2_NORM.bare_vjp(dh, A.conj().mT, C.conj(), B.conj())
    return unbroadcast_each((dA.conj().mT, dC.conj(), dB.conj()), (A, B, C))


def slice_by_slice(one):
    """Each member of the batch by itself; NaN where an argument has NaN."""

    def form(w, B, C):
        shape = np.broadcast_shapes(w.shape, B.shape, C.shape)
        h = np.full(shape[:-1], np.nan, np.finfo(np.result_type(w, B, C)).dtype)
        for i in np.ndindex(*shape[:-1]):
            member = [np.broadcast_to(x, shape)[i] for x in (w, B, C)]
            if all(np.isfinite(x).all() for x in member):
                h[i] = one(*member)
        return h

    return form


def in_orthonormal_functions(w, B, C):
    """√ of Σ_k |Σ_j v_j ψ_k(w_j)|², pole after pole."""
    if not (w.real < 0).all():
        return np.nan
    v, energy = B * C, 0
    for pole in w:
        size = np.abs((v / (w + pole.conj())).sum())
        energy = energy - 2 * pole.real * size**2
        v = v * (w - pole) / (w + pole.conj())
    return np.sqrt(energy)


def pairs_once(w, B, C):
    """Σ_i |v_i|²/(−2 Re w_i) + 2 Re Σ_{i<j}."""
    if not (w.real < 0).all():
        return np.nan
    v, (i, j) = B * C, np.triu_indices(len(w), 1)
    alone = (np.abs(v) ** 2 / (-2 * w.real)).sum()
    beside = (v[i] * v[j].conj() / -(w[i] + w[j].conj())).real.sum()
    return np.sqrt(np.maximum(alone + 2 * beside, 0))


def in_double(w, B, C):
    """The reference in double precision, rounded at the end."""
    h = H2_NORM_DIAGONAL.reference(*(x.astype(np.result_type(x, np.float64)) for x in (w, B, C)))
    return h.astype(np.finfo(np.result_type(w, B, C)).dtype)


def turned(dh, w, B, C):
    """The VJP with B and C exchanged, and the poles in reverse order."""
    arrays = (x[..., ::-1] for x in (w, C, B))
    dw, dC, dB = H2_NORM_DIAGONAL.bare_vjp(dh, *arrays)
    return dw[..., ::-1], dB[..., ::-1], dC[..., ::-1]


ENERGIES = [
    Honest(H2_NORM.name, "from_the_output", by_members(by_scipy, from_the_output), turned_round),
    Honest(H2_NORM.name, "length_of_a_row", by_members(by_scipy, length_of_a_row)),
    Honest(H2_NORM.name, "kronecker", by_members(by_kronecker, from_the_output)),
    Honest(
        H2_NORM_DIAGONAL.name,
        "in_orthonormal_functions",
        slice_by_slice(in_orthonormal_functions),
        turned,
    ),
    Honest(H2_NORM_DIAGONAL.name, "pairs_once", slice_by_slice(pairs_once)),
    Honest(H2_NORM_DIAGONAL.name, "in_double", in_double),
]
