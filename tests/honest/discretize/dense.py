"""Honest discretizations: dense by SciPy, Padé and eigenvectors; diagonal by other formulas.

They are of zero-order hold and the bilinear map; other rules are in `rules.py`.
"""

import numpy as np
from scipy import linalg

from honest import Honest
from honest.discretize.rules import RULES, by_scipy, not_triangular, pade_of
from refssm.discretize import (
    DISCRETIZE_BILINEAR,
    DISCRETIZE_DIAGONAL_BILINEAR,
    DISCRETIZE_DIAGONAL_ZOH,
    DISCRETIZE_ZOH,
)
from refssm.discretize.hold import zoh_exponent
from refssm.discretize.rational import bilinear_systems


def scipy_expm(A, B, dt):
    """The augmented exponential by SciPy."""
    n, E = A.shape[-1], by_scipy(zoh_exponent(A, B, dt))
    return E[..., :n, :n], E[..., :n, n:]


def pade(A, B, dt):
    """The diagonal Padé approximant of degree 13: scaled to norm 5.4, then squared; one by one."""
    n, E = A.shape[-1], pade_of(zoh_exponent(A, B, dt))
    return E[..., :n, :n], E[..., :n, n:]


def in_double(A, B, dt):
    """The reference in double precision, rounded at the end."""
    wide = [x.astype(np.result_type(x, np.float64)) for x in (A, B, dt)]
    results = zip(DISCRETIZE_ZOH.reference(*wide), (A.dtype, np.result_type(A, B)), strict=True)
    return tuple(y.astype(dtype) for y, dtype in results)


def _hermitian(x):
    """The case with a Hermitian, negative semidefinite A, so that eigenvectors are unitary."""
    A = x["A"].astype(np.result_type(x["A"], np.float64))
    H = (A + A.conj().swapaxes(-1, -2)) / 2
    finite = np.isfinite(H)
    top = np.linalg.eigvalsh(np.where(finite, H, 0)).max(-1, initial=0)
    # once shifted, it is not shifted again
    shift = np.where((top > 0) & finite.all((-2, -1)), np.ceil(top) + 1, 0)
    shifted = H - shift[..., None, None] * np.eye(A.shape[-1])
    # NaN stays: eigenvectors of it do not exist, and this method declines it
    return {**x, "A": shifted.astype(x["A"].dtype)}


def eigenvectors(A, B, dt):
    """V e^{dt w} Vᴴ and V dt φ₁(dt w) Vᴴ B."""
    if not np.isfinite(A).all():
        raise NotImplementedError("no eigenvectors of NaN")
    w, V = np.linalg.eigh(A)
    z, adjoint = dt[..., None] * w, V.conj().swapaxes(-1, -2)
    held = dt[..., None] * np.where(z == 0, 1, np.expm1(z) / np.where(z == 0, 1, z))
    return (V * np.exp(z)[..., None, :]) @ adjoint, (V * held[..., None, :]) @ (adjoint @ B)


def one_solve(A, B, dt):
    """Both right-hand sides in one solve."""
    n = A.shape[-1]
    M, N, H = bilinear_systems(A, B, dt)
    batch = np.broadcast_shapes(N.shape[:-2], H.shape[:-2])
    sides = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (N, H))
    X = np.linalg.solve(M, np.concatenate([*sides], axis=-1))
    return X[..., :n], X[..., n:]


def twice_the_resolvent(A, B, dt):
    """Ā = 2 (I − ½dt A)⁻¹ − I."""
    M, _, H = bilinear_systems(A, B, dt)
    I = np.eye(A.shape[-1], dtype=M.dtype)
    return 2 * np.linalg.solve(M, I) - I, np.linalg.solve(M, H)


def orthogonal(A, B, dt):
    """M = Q R and back substitution, for each matrix by itself."""
    M, N, H = bilinear_systems(A, B, dt)
    batch = np.broadcast_shapes(M.shape[:-2], H.shape[:-2])
    results = []
    for side in (N, H):
        side = np.broadcast_to(side, (*batch, *side.shape[-2:]))
        X = np.empty(side.shape, np.result_type(M, side))
        for i in np.ndindex(*batch):
            Q, R = np.linalg.qr(np.broadcast_to(M, (*batch, *M.shape[-2:]))[i])
            X[i] = linalg.solve_triangular(R, Q.conj().T @ side[i], check_finite=False)
        results.append(X)
    A_bar, B_bar = results
    return A_bar.astype(M.dtype), B_bar


def _double(reference):
    """The reference in double precision, rounded to the types of the arguments."""

    def rounded(w, B, dt):
        results = reference(*(x.astype(np.result_type(x, np.float64)) for x in (w, B, dt)))
        types = (w.dtype, np.result_type(w, B))
        return tuple(y.astype(t) for y, t in zip(results, types, strict=True))

    return rounded


def series_near_zero(w, B, dt):
    """(e^z − 1)/z, by its series for |z| < 1."""
    z = dt * w
    near, series = np.where(np.abs(z) < 1, z, 0), np.ones_like(z)
    for k in range(22, 1, -1):
        series = 1 + near / k * series
    outer = np.where(np.abs(z) < 1, 1, z)
    phi = np.where(np.abs(z) < 1, series, (np.exp(outer) - 1) / outer)
    return np.exp(z), (dt * phi)[..., None] * B


def halved_exponent(w, B, dt):
    """e^z = (e^{z/2})², φ₁(z) = φ₁(z/2) (e^{z/2} + 1)/2."""
    h = dt * w / 2
    half, root = np.where(h == 0, 1, np.expm1(h) / np.where(h == 0, 1, h)), np.exp(h)
    return root * root, (dt * half * (root + 1) / 2)[..., None] * B


def one_resolvent(w, B, dt):
    """Ā = 2R − 1, B̄ = dt R B, R = 1/(1 − ½dt w)."""
    R = 1 / (1 - dt * w / 2)
    return 2 * R - 1, (dt * R)[..., None] * B


def doubled(w, B, dt):
    """(2 + dt w)/(2 − dt w) and 2dt B/(2 − dt w)."""
    z = dt * w
    return (2 + z) / (2 - z), (2 * dt)[..., None] * B / (2 - z)[..., None]


FORMS = {
    DISCRETIZE_ZOH: (pade, in_double),
    DISCRETIZE_BILINEAR: (one_solve, twice_the_resolvent, orthogonal),
    DISCRETIZE_DIAGONAL_ZOH: (series_near_zero, halved_exponent),
    DISCRETIZE_DIAGONAL_BILINEAR: (one_resolvent, doubled),
}
DIAGONAL = (DISCRETIZE_DIAGONAL_ZOH, DISCRETIZE_DIAGONAL_BILINEAR)

IMPLEMENTATIONS = [
    *(Honest(op.name, form.__name__, form) for op, forms in FORMS.items() for form in forms),
    *(Honest(op.name, "in_double", _double(op.reference)) for op in DIAGONAL),
    Honest(DISCRETIZE_ZOH.name, "scipy_expm", scipy_expm, only=not_triangular),
    Honest(DISCRETIZE_ZOH.name, "eigenvectors", eigenvectors, only=_hermitian),
    *RULES,
]
