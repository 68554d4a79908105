"""Honest discretizations by other rules than zero-order hold and the bilinear map."""

import numpy as np
from scipy import linalg

from honest import Honest
from refssm.discretize import (
    DISCRETIZE_BACKWARD,
    DISCRETIZE_DIAGONAL_BACKWARD,
    DISCRETIZE_DIAGONAL_EULER,
    DISCRETIZE_DIAGONAL_FOH,
    DISCRETIZE_DIAGONAL_GBT,
    DISCRETIZE_DIAGONAL_IMPULSE,
    DISCRETIZE_DIAGONAL_MAMBA,
    DISCRETIZE_EULER,
    DISCRETIZE_FOH,
    DISCRETIZE_GBT,
    DISCRETIZE_IMPULSE,
    DISCRETIZE_MAMBA,
)
from refssm.discretize.blocks import for_every, identity, scaled
from refssm.discretize.hold import foh_exponent
from refssm.discretize.rational import gbt_systems


def by_scipy(G):
    """scipy.linalg.expm in complex arithmetic, because that of real arrays has a wrong term.

    docs/findings.md: the real one adds G⁶ to the odd half of its approximant of degree 13.
    """
    E = linalg.expm(G.astype(np.result_type(G, np.complex64)))
    return E if np.iscomplexobj(G) else np.real(E)


def not_triangular(x):
    """Declines triangular A, for which SciPy's divided differences cancel: docs/findings.md."""
    sides = (np.tril(x["A"], -1), np.triu(x["A"], 1))
    return x if all(side.any((-2, -1)).all() for side in sides) else None


def pade_of(G):
    """e^G by the diagonal Padé approximant, for each matrix by itself."""
    if not G.size:
        return G
    return np.stack([_pade(g) for g in G.reshape(-1, *G.shape[-2:])]).reshape(G.shape)


def _pade(G, degree=13):
    real, norm = np.finfo(G.dtype).dtype.type, np.abs(G).sum(-2).max(initial=0)
    s = max(0, int(np.ceil(np.log2(norm / 5.4)))) if 0 < norm < np.inf else 0
    G, I = G / real(2.0**s), np.eye(G.shape[-1], dtype=G.dtype)
    numerator, denominator, power, c = I, I, I, 1.0
    for k in range(1, degree + 1):
        c *= (degree - k + 1) / (k * (2 * degree - k + 1))
        power = power @ G
        numerator = numerator + real(c) * power
        denominator = denominator + real(c * (-1) ** k) * power
    E = np.linalg.solve(denominator, numerator)
    for _ in range(s):
        E = E @ E
    return E


def _joined(exponential):
    """First-order hold by an exponential of [[dt A, dt B, 0], [0, 0, I], [0, 0, 0]]."""

    def foh(A, B, dt):
        n, m = B.shape[-2:]
        E = exponential(foh_exponent(A, B, dt))
        both, end = E[..., :n, n : n + m], E[..., :n, n + m :]
        return E[..., :n, :n], end, both - end

    return foh


def _beside(exponential, factor):
    """e^{dt A} by `exponential`, and B times a factor."""
    return lambda A, B, dt: for_every(exponential(scaled(A, dt)), factor(B, dt))


def by_increment(A, B, dt, alpha):
    """Ā = I + M⁻¹ dt A."""
    M, _, H = gbt_systems(A, B, dt, alpha=alpha)
    F = scaled(A, dt)
    A_bar = identity(A) + np.linalg.solve(M, np.broadcast_to(F, M.shape))
    return for_every(A_bar, np.linalg.solve(M, np.broadcast_to(H, (*_batch(M, H), *H.shape[-2:]))))


def not_stiff(x):
    """The case with dt max|A| ≤ 8, by a power of two.

    M⁻¹ dt A of a stiff mode is near −I/α, and its solution errs by κ(M) u in slow modes, too.
    """
    largest = np.nanmax(np.abs(x["A"]), initial=0) * np.nanmax(np.abs(x["dt"]), initial=0)
    scale = 2.0 ** np.ceil(np.log2(max(1.0, float(largest) / 8)))
    return {**x, "dt": (x["dt"] / scale).astype(x["dt"].dtype)}


def orthogonal(A, B, dt, alpha):
    """M = Q R and back substitution, for each matrix by itself."""
    M, N, H = gbt_systems(A, B, dt, alpha=alpha)
    return for_every(*(_by_rows(M, side) for side in (N, H)))


def _by_rows(M, side):
    batch = _batch(M, side)
    M, side = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (M, side))
    X = np.empty(side.shape, np.result_type(M, side))
    for i in np.ndindex(*batch):
        Q, R = np.linalg.qr(M[i])
        X[i] = linalg.solve_triangular(R, Q.conj().T @ side[i], check_finite=False)
    return X


def _batch(*matrices):
    return np.broadcast_shapes(*(x.shape[:-2] for x in matrices))


def entry_by_entry(A, B, dt):
    """I + dt A with a separate diagonal, and dt B by einsum."""
    A_bar = np.array(np.einsum("...,...ij->...ij", dt, A))
    i = np.arange(A.shape[-1])
    A_bar[..., i, i] = A_bar[..., i, i] + 1
    return for_every(A_bar, np.einsum("...ij,...->...ij", B, dt))


def later_series(w, B, dt):
    """φ₂ and φ₁' by their series for |z| < 2, else by quotients of e^z."""
    z = dt * w
    near, outer = np.abs(z) < 2, np.where(np.abs(z) < 2, 2, z)
    inner, one = np.where(near, z, 0), np.ones((), np.finfo(z.dtype).dtype)
    end, start = one / 2 + 0 * inner, one / 2 + 0 * inner  # z^k/(k + 2)!, z^k/(k! (k + 2))
    term, power = end, 1 + 0 * inner
    for k in range(1, 33):
        term, power = term * inner / (k + 2), power * inner / k
        end, start = end + term, start + power / (k + 2)
    held = np.expm1(outer) / outer
    end = np.where(near, end, (held - 1) / outer)
    start = np.where(near, start, (np.exp(outer) - held) / outer)
    return for_every(np.exp(z), (dt * end)[..., None] * B, (dt * start)[..., None] * B, rank=1)


def conjugate_quotient(w, B, dt, alpha):
    """Both results as quotients over |1 − αz|²."""
    z = dt * w
    below = (1 - alpha * z).conj()
    size = np.square(below.real) + np.square(below.imag)
    A_bar = (1 + (1 - alpha) * z) * below / size
    return for_every(A_bar, (dt * below / size)[..., None] * B, rank=1)


def subtracted(w, B, dt):
    """Ā = 1 − (−dt) w."""
    return for_every(1 - np.negative(dt) * w, B * dt[..., None], rank=1)


def reciprocal(w, B, dt, alpha):
    """R = 1/(1 − αz), then products with it."""
    R = 1 / (1 - alpha * (dt * w))
    A_bar = (1 + (1 - alpha) * (dt * w)) * R
    return for_every(A_bar, (dt * R)[..., None] * B, rank=1)


def halved_exponent(factor):
    """e^z = (e^{z/2})²."""

    def rule(w, B, dt):
        root = np.exp(dt * w / 2)
        return for_every(root * root, factor(B, dt), rank=1)

    return rule


def turned(factor):
    """e^z by modulus and phase."""

    def rule(w, B, dt):
        size, angle = np.exp(dt * w.real), dt * w.imag
        phase = np.cos(angle) + 1j * np.sin(angle) if np.iscomplexobj(w) else 1
        return for_every((size * phase).astype(np.result_type(w, dt)), factor(B, dt), rank=1)

    return rule


def _double(op):
    """The reference in double precision, rounded to the output types."""

    def rounded(*arrays, **statics):
        wide = [x.astype(np.result_type(x, np.float64)) for x in arrays]
        results = zip(op.reference(*wide, **statics), op.output_types(*arrays), strict=True)
        return tuple(y.astype(t) for y, t in results)

    return rounded


def _fixed(rule, alpha):
    return lambda A, B, dt: rule(A, B, dt, alpha)


def _rows(B, dt):
    return dt[..., None] * B


def _kept(B, dt):
    return np.copy(B)


def _with_alpha(rule):
    return lambda A, B, dt, *, alpha: rule(A, B, dt, alpha)


FORMS = {
    DISCRETIZE_FOH: {"pade": _joined(pade_of)},
    DISCRETIZE_IMPULSE: {"pade": _beside(pade_of, _kept)},
    DISCRETIZE_MAMBA: {"pade": _beside(pade_of, scaled)},
    DISCRETIZE_GBT: {"orthogonal": _with_alpha(orthogonal)},
    DISCRETIZE_BACKWARD: {"orthogonal": _fixed(orthogonal, 1)},
    DISCRETIZE_EULER: {"entry_by_entry": entry_by_entry},
    DISCRETIZE_DIAGONAL_FOH: {"later_series": later_series},
    DISCRETIZE_DIAGONAL_IMPULSE: {
        "halved_exponent": halved_exponent(_kept),
        "turned": turned(_kept),
    },
    DISCRETIZE_DIAGONAL_MAMBA: {"halved_exponent": halved_exponent(_rows), "turned": turned(_rows)},
    DISCRETIZE_DIAGONAL_GBT: {
        "conjugate_quotient": _with_alpha(conjugate_quotient),
        "reciprocal": _with_alpha(reciprocal),
    },
    DISCRETIZE_DIAGONAL_EULER: {"subtracted": subtracted},
    DISCRETIZE_DIAGONAL_BACKWARD: {
        "conjugate_quotient": _fixed(conjugate_quotient, 1),
        "reciprocal": _fixed(reciprocal, 1),
    },
}
BY_SCIPY = {
    DISCRETIZE_FOH: _joined(by_scipy),
    DISCRETIZE_IMPULSE: _beside(by_scipy, _kept),
    DISCRETIZE_MAMBA: _beside(by_scipy, scaled),
}
INCREMENTS = {
    DISCRETIZE_GBT: _with_alpha(by_increment),
    DISCRETIZE_BACKWARD: _fixed(by_increment, 1),
}
RULES = [
    *(Honest(op.name, "in_double", _double(op)) for op in FORMS),
    *(Honest(op.name, name, form) for op, forms in FORMS.items() for name, form in forms.items()),
    *(Honest(op.name, "by_increment", f, only=not_stiff) for op, f in INCREMENTS.items()),
    *(Honest(op.name, "scipy_expm", f, only=not_triangular) for op, f in BY_SCIPY.items()),
]
