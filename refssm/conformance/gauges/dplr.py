"""Error rules of the spectra of diagonal plus low-rank (DPLR) kernels.

Operation by operation, the bounds would be far too large, because they add moduli where C̃D⁻¹B and
Woodbury's term cancel, and in the n² entries of matrix powers: 10⁵ times the errors of programs for
HiPPO-LegS with n = 64. These rules multiply each error by the derivative of the kernel instead.
They add roundings of different entries in quadrature, and roundings of one entry at different times
as moduli.

A rounding of Ā_ij changes K_k by conv(g_i, x_j)_{k−1}, with g_a = C Ā^a and x_b = Ā^b B̄. One of
D_n(z_j) changes the spectrum by 2 Y_n X_n, with X = S⁻¹B and Y = S⁻ᵀC̃. Importing this module
registers the rules.
"""

from typing import NamedTuple

import numpy as np

from refssm._numerics.powers import through_powers
from refssm.conformance.gauges.linalg import frobenius, length_of, spectral_norm
from refssm.conformance.gauges.rules import product_charge, rule, tree
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, met, modulus
from refssm.dplr.aliased import dplr_aliased_spectrum, resolved
from refssm.dplr.kernel import dplr_spectrum, near_poles
from refssm.dplr.system import around_the_circle, bilinear, denominators, inverse, matrix


class _System(NamedTuple):
    """The arguments of one member of the batch, or the errors of these arguments."""

    w: np.ndarray
    P: np.ndarray
    Q: np.ndarray
    B: np.ndarray
    C: np.ndarray
    dt: np.ndarray

    @property
    def charge(self):
        """Roundings in one entry of a matrix-vector product."""
        return tree(len(self.w)) + product_charge(self.w, self.P)


@rule(FUNCTIONS, dplr_spectrum)
def _dplr_spectrum(*arguments, l):
    """Errors of the recurrence at every node, plus those of the resolvent where no pole is near.

    If a pole is nearer to a node than nodes are to each other, a program must sum over time there.
    Its error is that of the recurrence. C̃ is also computed from powers of Ā, so the errors of the
    recurrence count at every node.
    """

    def errors(system, carried):
        alike = [_through_time(system, inputs, l) for inputs in carried]
        w, P, Q, B, C, dt = system
        C_tilde, _ = through_powers(*bilinear(w, P, Q, B, dt), C, NO_NODES, l)
        at = _solved(system, C_tilde, l)
        near = near_poles(at.D, w, dt).any(-1)
        made = np.where(near, 0, _at_nodes(system, C_tilde, at))
        return np.stack([made + one for one in alike], axis=-1)

    return _each(dplr_spectrum, arguments, l, errors)


@rule(FUNCTIONS, dplr_aliased_spectrum)
def _dplr_aliased_spectrum(*arguments, l):
    """Errors of the resolvent, and of the inputs times the derivatives of the spectrum."""

    def errors(system, carried):
        at = _solved(system, system.C, l)
        made = _at_nodes(system, system.C, at)
        moved = [_from_inputs(inputs, system.dt, at) for inputs in carried]
        return np.stack([made + one for one in moved], axis=-1)

    return _each(dplr_aliased_spectrum, arguments, l, errors)


CORES = (1, 2, 2, 1, 1, 0)
NO_NODES = np.zeros(0, int)


def _each(spectrum, arguments, l, errors) -> Tracked:
    """The tracked spectrum; `errors(system, carried)` gives the errors of one member of the batch.

    `carried` is a pair of `_System`: the errors of the arguments for k0 and for k1.
    """
    values = [x.value for x in arguments]
    value = spectrum(*values, l=l)
    met(np.abs(value))
    batch, both = value.shape[:-1], np.zeros((*value.shape, 2))

    def member(x, core, i):
        return np.broadcast_to(x, (*batch, *x.shape[x.ndim - core :]))[i]

    for i in np.ndindex(*batch if l else (0,)):
        pairs = list(zip(arguments, CORES, strict=True))
        system = _System(*(member(x.value, core, i) for x, core in pairs))
        carried = [
            _System(*(member(x.errors[..., gauge], core, i) for x, core in pairs))
            for gauge in (0, 1)
        ]
        both[i] = errors(system, carried)
    return Tracked(value, both)


def _through_time(system: _System, inputs: _System, l):
    """The largest error of any K_k, if the recurrence computes it.

    f_b is the squared error of step b: roundings of entries of Ā x_b add in quadrature. Errors of
    different steps add as moduli, because a slow recurrence repeats the same rounding:
    Σ_b √f_b ≤ √(k Σ_b f_b).
    """
    w, P, Q, B, _, dt = (Tracked(v) for v in system)
    E, B_bar = bilinear(w, P, Q, B, dt)
    A_bar = np.eye(len(w)) - E.value
    x, g = _powers(A_bar, B_bar.value, l), _powers(A_bar.T, system.C, l)
    for y in (E.value, x, g):
        met(np.abs(y))
    A_errors = E.errors[..., 0] + spectral_norm(A_bar)
    squares = np.abs(A_bar) ** 2 @ (np.abs(x) ** 2)
    stepped = np.maximum(system.charge**2 * squares, modulus(np.zeros(())) ** 2)
    made = _later(_of_entries(g, A_errors, x))
    made += _later(np.sqrt(np.arange(1, l + 1) * _convolved(np.abs(g) ** 2, stepped).sum(0)))
    made += length_of(g.T * B_bar.errors[..., 0]) + length_of(g.T) * length_of(B_bar.value)
    made += length_of(x.T) * length_of(system.C) * system.charge
    return (made + _from_inputs_in_time(system, inputs, x, g)).max()


def _powers(A, b, l):
    """b, A b, A² b …, shape (n, l), by repeated squaring: its own errors do not matter here."""
    X = b[:, None].astype(complex)
    while X.shape[-1] < l:
        X, A = np.concatenate([X, A @ X], axis=-1), A @ A
    return X[:, :l]


def _convolved(x, y):
    """conv(x, y) along the last axis, cut to the length of x; negative real results become 0."""
    l = x.shape[-1]
    both = np.fft.ifft(np.fft.fft(x, 2 * l) * np.fft.fft(y, 2 * l))[..., :l]
    return both if np.iscomplexobj(x) else np.maximum(both.real, 0)


def _later(x):
    """x delayed by one step: 0, x_0, x_1 …, because an error of a step reaches the next one."""
    return np.concatenate([np.zeros(1), x[:-1]])


def _of_entries(g, errors, x):
    """√(Σ_ij |conv(g_i, x_j)_k|² errors_ij²), k = 0 … l−1."""
    made = np.zeros(g.shape[-1])
    if not np.any(errors):
        return made
    for row, error in zip(g, np.broadcast_to(errors, (len(g), len(g))), strict=True):
        made += (np.abs(_convolved(row[None, :], x)) ** 2 * error[:, None] ** 2).sum(0)
    return np.sqrt(made)


def _from_inputs_in_time(system, inputs, x, g):
    """The error of each K_k from errors of the inputs; those of A count in Frobenius norm.

    dĀ = ½ M⁻¹ d(dt A) (I + Ā), so its part in K_k is Σ_ij conv(γ_i, y_j)_k d(dt A)_ij with
    γ = ½ M⁻ᵀ g, y_0 = x_0 and y_b = x_{b−1} + x_b.
    """
    w, P, Q, B, _, dt = system
    R, RP, V = inverse(w, P, Q, dt[None])
    gamma = (R[:, None] * g - dt / 2 * (V.T @ (RP.T @ g))) / 2
    y = x + np.pad(x, ((0, 0), (1, 0)))[:, :-1]
    of_P = frobenius(inputs.P) * frobenius(Q) + frobenius(P) * frobenius(inputs.Q)
    of_A = dt * (length_of(inputs.w) + of_P)
    through_dt = _convolved(gamma, matrix(w, P, Q) @ y).sum(0) + 2 * gamma.T @ B
    reached = np.abs(through_dt) * inputs.dt + _of_entries(gamma, of_A, y)
    return reached + 2 * dt * np.abs(gamma).T @ inputs.B + np.abs(x).T @ inputs.C


class _Nodes(NamedTuple):
    """Moduli at every node z, with S = D + (1 + z) P Qᴴ: X = S⁻¹ B, Y = S⁻ᵀ C, Qᴴ X, Pᵀ Y, Yᵀ X."""

    below: np.ndarray  # |1 − z|
    size: np.ndarray  # |1 + z|
    D: np.ndarray
    X: np.ndarray
    Y: np.ndarray
    QX: np.ndarray
    PY: np.ndarray
    YX: np.ndarray


def _solved(system: _System, C, l) -> _Nodes:
    """The moduli of D and of the solutions with S, at every node."""
    w, P, Q, B, _, dt = system
    below, above = around_the_circle(l, *system)
    D = denominators(below, above, w, dt)
    X, Y = resolved(D, above, P, Q, B), resolved(D, above, Q.conj(), P.conj(), C)
    for y in (D, X, Y):
        met(np.abs(y))
    return _Nodes(*map(np.abs, (below, above, D, X, Y, X @ Q.conj(), Y @ P, (Y * X).sum(-1))))


def _at_nodes(system: _System, C, at: _Nodes):
    """Errors of 2 C S⁻¹ B from roundings of z, of D and 1/D, and of Woodbury's sums.

    A rounding of 1/D_n has the effect of a rounding of D_n: it is multiplied by X_n and Y_n, even
    if 1/D_n is large. z is off by one rounding, except at 1, −1 and ±i.
    """
    exact = 4 * np.arange(len(at.D)) % len(at.D) == 0
    size, dt = np.abs(system.w), system.dt
    moved = np.where(exact, 0, 1)[:, None] * (2 / dt + size)
    terms = (2 * at.below / dt)[:, None] + at.size[:, None] * size + at.D
    made = (at.X * at.Y * (moved + system.charge * terms)).sum(-1)
    made += system.charge * (1 + at.size) * (at.PY * at.QX).sum(-1)
    return 2 * (made + _of_sums(system, C, at))


def _of_sums(system: _System, C, at: _Nodes):
    """Roundings of C D⁻¹ B and of the three sums of Woodbury's term.

    They are multiplied by C D⁻¹ P (I + s Qᴴ D⁻¹ P)⁻¹ = YᵀP and by Qᴴ X. If some D_n is 0 the result
    is 0: then a program eliminates all of S, and `_at_nodes` counts the roundings of its entries.
    """
    R = 1 / np.where(at.D == 0, 1, at.D)
    P, Q, CR, RB = np.abs(system.P), np.abs(system.Q), np.abs(C) * R, R * np.abs(system.B)
    middle = np.einsum("nr,ln,nq->lrq", Q, R, P)
    through = ((CR @ P) * at.QX).sum(-1) + (at.PY * (RB @ Q)).sum(-1)
    through += at.size * np.einsum("lr,lrq,lq->l", at.PY, middle, at.QX)
    sums = CR @ np.abs(system.B) + at.size * through
    return np.where((at.D == 0).any(-1), 0, system.charge * sums)


def _from_inputs(inputs: _System, dt, at: _Nodes):
    """Σ |∂K̂/∂input| · (error of that input), at every node."""
    reached = at.X @ inputs.C + at.Y @ inputs.B + at.size * ((at.X * at.Y) @ inputs.w)
    low_rank = (at.Y @ inputs.P) * at.QX + (at.X @ inputs.Q) * at.PY
    reached += at.size * low_rank.sum(-1)
    return 2 * (reached + 2 * at.below / dt**2 * at.YX * inputs.dt)
