"""Error rules of the spectra of diagonal plus low-rank kernels: what an error does to the kernel.

Followed operation by operation, moduli add up where C̃D⁻¹B and Woodbury's term cancel, and where
the n² entries of a power do: for HiPPO-LegS with n = 64 a hundred thousand times what programs err
by. Here an error is carried by the derivative of the kernel with respect to what is in error.
Roundings of different entries are independent, those of one entry at different times are not.

A rounding of Ā_ij reaches K_k as conv(g_i, x_j)_{k−1}, g_a = C Ā^a, x_b = Ā^b B̄; one of D_n(z_j)
reaches the spectrum as 2 Y_n X_n, X = S⁻¹B, Y = S⁻ᵀC̃. Importing this module registers the rules.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from refssm._powers import through_powers
from refssm.conformance.gauges.linalg import frobenius, spectral_norm
from refssm.conformance.gauges.rules import product_charge, rule, tree
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, met, modulus
from refssm.dplr.aliased import dplr_aliased_spectrum, resolved
from refssm.dplr.kernel import dplr_spectrum, near_poles
from refssm.dplr.system import around_the_circle, bilinear, denominators, inverse, matrix


class _System(NamedTuple):
    """One member of a batch: its arguments, and what a program makes of them first."""

    w: np.ndarray
    P: np.ndarray
    Q: np.ndarray
    B: np.ndarray
    C: np.ndarray
    dt: np.ndarray

    @property
    def charge(self):
        """Roundings in an entry of a product with a matrix."""
        return tree(len(self.w)) + product_charge(self.w, self.P)


@rule(FUNCTIONS, dplr_spectrum)
def _dplr_spectrum(*arguments, l):
    """Both forms: of the recurrence, at every node alike, and of a resolvent where no pole is near.

    At a node nearer to a pole than nodes are to each other a program has to sum over time, and
    what it errs by there is what the recurrence does. C̃, too, is made of the same powers.
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
    """Those of the resolvent; of inputs, by the derivatives of its VJP."""

    def errors(system, carried):
        at = _solved(system, system.C, l)
        made = _at_nodes(system, system.C, at)
        moved = [_from_inputs(inputs, system.dt, at) for inputs in carried]
        return np.stack([made + one for one in moved], axis=-1)

    return _each(dplr_aliased_spectrum, arguments, l, errors)


CORES = (1, 2, 2, 1, 1, 0)
NO_NODES = np.zeros(0, int)


def _each(spectrum, arguments, l, errors) -> Tracked:
    """Every member of the batch by itself; its errors in both gauges from those of its inputs."""
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
    """The largest error of any K_k by the recurrence, from its roundings and those of its inputs.

    Of step b: what is rounded in Ā x_b, entries in quadrature, steps one by one, for roundings of a
    slow recurrence are alike: Σ_b √f_b ≤ √(k Σ_b f_b).
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
    made += _quadrature(g.T * B_bar.errors[..., 0]) + _quadrature(g.T) * _quadrature(B_bar.value)
    made += _quadrature(x.T) * _quadrature(system.C) * system.charge
    return (made + _from_inputs_in_time(system, inputs, x, g)).max()


def _powers(A, b, l):
    """b, A b, A² b … (n, l): doubled, for their errors do not matter here."""
    X = b[:, None].astype(complex)
    while X.shape[-1] < l:
        X, A = np.concatenate([X, A @ X], axis=-1), A @ A
    return X[:, :l]


def _convolved(x, y):
    """conv(x, y) along the last axis, as long as they are; nowhere negative where they are not."""
    l = x.shape[-1]
    both = np.fft.ifft(np.fft.fft(x, 2 * l) * np.fft.fft(y, 2 * l))[..., :l]
    return both if np.iscomplexobj(x) else np.maximum(both.real, 0)


def _later(x):
    """0, x_0, x_1 …: what a step makes shows in the next."""
    return np.concatenate([np.zeros(1), x[:-1]])


def _quadrature(x):
    """√Σ|x|² along the last axis."""
    return np.sqrt((np.abs(x) ** 2).sum(-1))


def _of_entries(g, errors, x):
    """√(Σ_ij |conv(g_i, x_j)_k|² errors_ij²), k = 0 … l−1."""
    made = np.zeros(g.shape[-1])
    if not np.any(errors):
        return made
    for row, error in zip(g, np.broadcast_to(errors, (len(g), len(g))), strict=True):
        made += (np.abs(_convolved(row[None, :], x)) ** 2 * error[:, None] ** 2).sum(0)
    return np.sqrt(made)


def _from_inputs_in_time(system, inputs, x, g):
    """What the errors of inputs do to each K_k: of A in norm, as an eigenproblem makes them.

    dĀ = ½ M⁻¹ d(dt A) (I + Ā), so its part in K_k is Σ_ij conv(γ_i, y_j)_k d(dt A)_ij with
    γ = ½ M⁻ᵀ g, y_0 = x_0 and y_b = x_{b−1} + x_b.
    """
    w, P, Q, B, _, dt = system
    R, RP, V = inverse(w, P, Q, dt[None])
    gamma = (R[:, None] * g - dt / 2 * (V.T @ (RP.T @ g))) / 2
    y = x + np.pad(x, ((0, 0), (1, 0)))[:, :-1]
    of_P = frobenius(inputs.P) * frobenius(Q) + frobenius(P) * frobenius(inputs.Q)
    of_A = dt * (_quadrature(inputs.w) + of_P)
    through_dt = _convolved(gamma, matrix(w, P, Q) @ y).sum(0) + 2 * gamma.T @ B
    reached = np.abs(through_dt) * inputs.dt + _of_entries(gamma, of_A, y)
    return reached + 2 * dt * np.abs(gamma).T @ inputs.B + np.abs(x).T @ inputs.C


class _Nodes(NamedTuple):
    """D, and what solves with S = D + (1 + z) P Qᴴ: X = S⁻¹ B, Y = S⁻ᵀ C, Qᴴ X, Pᵀ Y, Yᵀ X."""

    below: np.ndarray
    size: np.ndarray  # |1 + z|
    D: np.ndarray
    X: np.ndarray
    Y: np.ndarray
    QX: np.ndarray
    PY: np.ndarray
    YX: np.ndarray


def _solved(system: _System, C, l) -> _Nodes:
    """At every node, all as moduli."""
    w, P, Q, B, _, dt = system
    below, above = around_the_circle(l, *system)
    D = denominators(below, above, w, dt)
    X, Y = resolved(D, above, P, Q, B), resolved(D, above, Q.conj(), P.conj(), C)
    for y in (D, X, Y):
        met(np.abs(y))
    return _Nodes(*map(np.abs, (below, above, D, X, Y, X @ Q.conj(), Y @ P, (Y * X).sum(-1))))


def _at_nodes(system: _System, C, at: _Nodes):
    """What 2 C S⁻¹ B errs by: roundings of z, of D and 1/D, and of Woodbury's sums.

    An error of D_n or of 1/D_n is one of D_n: X_n and Y_n are what it meets, however large 1/D_n.
    z is off by one rounding, but for 1, −1 and ±i.
    """
    exact = 4 * np.arange(len(at.D)) % len(at.D) == 0
    size, dt = np.abs(system.w), system.dt
    moved = np.where(exact, 0, 1)[:, None] * (2 / dt + size)
    terms = (2 * at.below / dt)[:, None] + at.size[:, None] * size + at.D
    made = (at.X * at.Y * (moved + system.charge * terms)).sum(-1)
    made += system.charge * (1 + at.size) * (at.PY * at.QX).sum(-1)
    return 2 * (made + _of_sums(system, C, at))


def _of_sums(system: _System, C, at: _Nodes):
    """Roundings of C D⁻¹ B, and of the three sums of Woodbury's term.

    What meets them are C D⁻¹ P (I + s Qᴴ D⁻¹ P)⁻¹ = YᵀP and Qᴴ X. Where a D_n is 0 all of S is
    eliminated, whose roundings are those of its entries.
    """
    R = 1 / np.where(at.D == 0, 1, at.D)
    P, Q, CR, RB = np.abs(system.P), np.abs(system.Q), np.abs(C) * R, R * np.abs(system.B)
    middle = np.einsum("nr,ln,nq->lrq", Q, R, P)
    through = ((CR @ P) * at.QX).sum(-1) + (at.PY * (RB @ Q)).sum(-1)
    through += at.size * np.einsum("lr,lrq,lq->l", at.PY, middle, at.QX)
    sums = CR @ np.abs(system.B) + at.size * through
    return np.where((at.D == 0).any(-1), 0, system.charge * sums)


def _from_inputs(inputs: _System, dt, at: _Nodes):
    """Σ |∂K̂/∂input| times the error of that input, at every node."""
    reached = at.X @ inputs.C + at.Y @ inputs.B + at.size * ((at.X * at.Y) @ inputs.w)
    low_rank = (at.Y @ inputs.P) * at.QX + (at.X @ inputs.Q) * at.PY
    reached += at.size * low_rank.sum(-1)
    return 2 * (reached + 2 * at.below / dt**2 * at.YX * inputs.dt)
