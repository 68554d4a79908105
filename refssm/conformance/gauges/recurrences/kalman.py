"""The error rule of a Kalman filter: two numbers a step, the norms of the errors of m and P.

To first order, with J = I − K C, a = S⁻¹ e, and δS, δe, δF errors of S, of e, and of C P⁻,

    δm⁻ = A δm + δA m,                δP⁻ = A δP Aᵀ + 2 sym(δA P Aᵀ) + δQ
    δm = J (δm⁻ + δP⁻ Cᵀ a) + P δCᵀ a + K (δy − δC m⁻ + δe − δS a) + δFᵀ a
    δP = J δP⁻ Jᵀ − 2 sym(K δC P) + K (δR + δS) Kᵀ + 2 sym(K δF)

so errors die out as those of the state's estimate do, whatever single operations make of them. The
roundings of a step are those of its products, n u in norm, and of a backward stable solve with S, p
u ‖S‖. Importing this module registers the rule.
"""

from typing import NamedTuple

import numpy as np

from refssm.conformance.gauges.linalg import frobenius, length_of, spectral_norm
from refssm.conformance.gauges.rules import rule
from refssm.conformance.gauges.tracked import FUNCTIONS, Tracked, lifted, met
from refssm.kalman.filtering import FilterStep, applied, filtered, product_of, transposed

LOGARITHM = 4  # roundings of one, as in `rules.py`
CORES = (2, 2, 2, 2, 1, 1, 2)  # axes of a mean, of one measurement, or of a matrix


class SystemErrors(NamedTuple):
    """Norms of the errors of the system and of one measurement, (…, 2)."""

    A: np.ndarray
    C: np.ndarray
    Q: np.ndarray
    R: np.ndarray
    y: np.ndarray


@rule(FUNCTIONS, filtered)
def _filtered(A, C, Q, R, y, m0, P0):
    given = A, C, Q, R, y, m0, P0 = tuple(map(lifted, (A, C, Q, R, y, m0, P0)))
    steps, start, halves = filtered(*(x.value for x in given))
    of_A, of_C, of_Q, of_R, of_y, to_m, to_P = (
        _off(x, r) for x, r in zip(given, CORES, strict=True)
    )
    with_errors = zip(start, (m0, P0), strict=True)
    begun = tuple(Tracked(x, np.broadcast_to(e.errors, (*x.shape, 2))) for x, e in with_errors)
    made, before = [], start
    running = np.abs(np.cumsum(halves, axis=-1))  # a sum along time rounds at each step
    lost = np.stack([running, running], axis=-1)
    for k, step in enumerate(steps):
        off = SystemErrors(of_A, of_C, of_Q, of_R, of_y[..., k, :])
        *ahead, size = _ahead(A.value, before, off, to_m, to_P)
        after = _after(C.value, R.value, y.value[..., k, :], step, off, *ahead, size)
        *fields, more = after
        lost[..., k, :] += more
        to_m, to_P, before = *fields[:2], (step.m, step.P)
        made.append(FilterStep(*map(_all_alike, step, (*ahead, *fields))))
    met(np.abs(halves))
    return made, begun, Tracked(halves, lost)


def _off(x: Tracked, core: int):
    """The 2-norm of the errors over the last axis or the last two, for k0 and k1: (…, 2)."""
    return np.sqrt((x.errors**2).sum(tuple(range(-1 - core, -1))))


def _all_alike(value, error):
    """`value` with one error for all entries of each mean or matrix."""
    met(np.abs(value))
    spread = error.reshape(*error.shape[:-1], *[1] * (value.ndim + 1 - error.ndim), 2)
    return Tracked(value, np.broadcast_to(spread, (*value.shape, 2)).copy())


def _norm(x):
    """‖x‖₂ of matrices, with an axis for k0 and k1."""
    return spectral_norm(x)[..., None]


def _length(x):
    """‖x‖₂ of vectors, with an axis for k0 and k1."""
    return length_of(x)[..., None]


def _ahead(A, before, off: SystemErrors, to_m, to_P):
    """The errors of m⁻ and P⁻, and the size of the terms of P⁻."""
    m, P = _length(before[0]), _norm(before[1])
    size, moved = _norm(A), off.A + (A.shape[-1] + 1) * _norm(A)
    return size * to_m + moved * m, size**2 * to_P + 2 * moved * size * P + off.Q, size**2 * P


def _after(C, R, y, step: FilterStep, off: SystemErrors, to_m, to_P, size):
    """The errors of m, P, K, a and S⁻¹, and of the step's part of −2 log p."""
    n, p = C.shape[-1] + 1, C.shape[-2] + 1  # roundings of a sum, and of what is added to it
    c, k, i, a = _norm(C), _norm(step.K), _norm(step.inverse), _length(step.a)
    m_before, m, P = _length(step.m_before), _length(step.m), _norm(step.P)
    P_before = _norm(step.P_before)
    to_P = to_P + 2 * (size + P_before)
    j, row = _norm(np.eye(n - 1) - step.K @ C), _norm(step.inverse @ C)
    seen = _length(applied(transposed(C), step.a))
    S = off.R + (n + p) * (c**2 * P_before + _norm(R))
    F, e = n * c * P_before, off.y + (off.C + n * c) * m_before
    e = e + _length(y) + _length(applied(C, step.m_before))
    new_m = j * (to_m + to_P * seen) + off.C * P * a + k * (e + S * a) + F * a + m_before + m
    new_P = j**2 * to_P + 2 * k * off.C * P + k**2 * S + 2 * k * F + n * P_before
    F, S = F + off.C * P_before, S + 2 * off.C * c * P_before
    new_K = j * row * to_P + i * (F + k * S)
    new_a = row * (to_m + to_P * seen) + i * (e + S * a)
    new_inverse = row**2 * to_P + i**2 * S
    rest = step.inverse - product_of(step.a, step.a)
    through = frobenius(transposed(C) @ rest @ C)[..., None]
    logs = frobenius(rest)[..., None] * S + 2 * a * e + through * to_P + 2 * seen * to_m
    sizes = 1 + np.abs(np.log(np.maximum(S, 1))) + np.abs(np.log(np.maximum(i, 1)))
    return new_m, new_P, new_K, new_a, new_inverse, logs + LOGARITHM * p * sizes
