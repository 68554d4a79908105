"""Honest steps of a scaled memory: by QR and LU, in double precision, and by sums of columns."""

import numpy as np
from scipy import linalg

from honest import Honest
from refssm.hippo import HIPPO_SCALED_BACKWARD, HIPPO_SCALED_BILINEAR, HIPPO_SCALED_EULER
from refssm.hippo.scaled import systems

ALPHAS = {HIPPO_SCALED_EULER: 0, HIPPO_SCALED_BILINEAR: 0.5, HIPPO_SCALED_BACKWARD: 1}


def _each(op, solved):
    """M⁻¹ times the right-hand side for each member of the batch by itself."""

    def step(*arrays, p):
        M, side = systems(*arrays, p=p, alpha=ALPHAS[op])
        batch = np.broadcast_shapes(M.shape[:-2], side.shape[:-2])
        M, side = (np.broadcast_to(y, (*batch, *y.shape[-2:])) for y in (M, side))
        y = np.empty(side.shape, np.result_type(M, side))
        for i in np.ndindex(*batch):
            y[i] = solved(M[i], side[i])
        return y

    return step


def by_qr(M, side):
    """M = Q R and back substitution."""
    Q, R = np.linalg.qr(M)
    return linalg.solve_triangular(R, Q.conj().T @ side, check_finite=False)


def by_lu(M, side):
    """LAPACK's factors of M; a NaN makes all of it NaN."""
    if not (M.size and np.isfinite(M).all()):
        return np.full(side.shape, np.nan)
    return linalg.lu_solve(linalg.lu_factor(M), side, check_finite=False)


def in_double(op):
    """The reference in double precision, rounded to the output's type."""

    def step(*arrays, p):
        wide = [y.astype(np.result_type(y, np.float64)) for y in arrays]
        return op.reference(*wide, p=p).astype(np.result_type(*arrays))

    return step


def summed(A, B, x, u, time, *, p):
    """x + h (A x + B uᵀ) by einsum, the time divided out last."""
    s = (p * time)[..., None, None]
    moved = np.einsum("...ik,...km->...im", A, x) + np.einsum("...i,...m->...im", B, u)
    return x + moved / s


SOLVED = (HIPPO_SCALED_BILINEAR, HIPPO_SCALED_BACKWARD)
IMPLEMENTATIONS = [
    Honest(HIPPO_SCALED_EULER.name, "summed", summed, HIPPO_SCALED_EULER.bare_vjp),
    *(Honest(op.name, "in_double", in_double(op), op.bare_vjp) for op in ALPHAS),
    *(Honest(op.name, "by_qr", _each(op, by_qr), op.bare_vjp) for op in SOLVED),
    *(Honest(op.name, "by_lu", _each(op, by_lu), op.bare_vjp) for op in SOLVED),
]
