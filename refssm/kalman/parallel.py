"""Filter and smoother as associative scans, in ⌈log₂ l⌉ steps [sarkka2021temporal].

An element of the filter says what the measurements of a span do, whatever was before: (F, b, U, η,
J) with x_k ~ N(F x_j + b, U) given x_j and the span, and a likelihood of x_j proportional to
exp(ηᵀ x_j − ½ x_jᵀ J x_j). One of the smoother is (E, g, L): x_k ~ N(E x_j + g, L) given x_j, j >
k.

    F = F' M F,   b = F' M (b + U η') + b',   U = F' M U F'ᵀ + U',   M = (I + U J')⁻¹
    η = Fᵀ Mᵀ (η' − J' b) + η,   J = Fᵀ Mᵀ J' F + J
    E = E E',   g = E g' + g,   L = E L' Eᵀ + L
"""

import numpy as np

from refssm._declaration.arguments import as_arrays
from refssm._declaration.operator import REFERENCE_TYPES
from refssm._numerics.elimination import eliminated
from refssm.associative import Schedule, associative_scan, hillis_steele
from refssm.kalman.filtering import (
    KALMAN_FILTER,
    applied,
    corrected,
    filtered,
    log_density,
    symmetric,
    transposed,
)
from refssm.kalman.smoothing import KALMAN_SMOOTHER, gain_factors


def kalman_filter_parallel(A, C, Q, R, y, m0, P0, *, schedule: Schedule = hillis_steele):
    """`kalman_filter` by an associative scan in the order of `schedule`.

    Arguments, results, types and errors are those of `kalman_filter`. All steps are combined at
    once, so that a solve of n × n is taken for each pair, of matrices that need not be symmetric.
    Source: [sarkka2021temporal].
    """
    A, C, Q, R, y, m0, P0 = _checked("kalman_filter_parallel", KALMAN_FILTER, A, C, Q, R, y, m0, P0)
    m, P, before = _scanned(schedule, A, C, Q, R, y, m0, P0)
    _, halves = corrected(C, symmetric(R), np.moveaxis(y, -2, 0), *before)
    logp = log_density(halves.sum(0), *y.shape[-2:])
    return as_arrays((np.moveaxis(m, 0, -2), np.moveaxis(P, 0, -3), logp))


def kalman_smoother_parallel(A, C, Q, R, y, m0, P0, *, schedule: Schedule = hillis_steele):
    """`kalman_smoother` by two associative scans, the second in reverse time.

    Arguments, results, types and errors are those of `kalman_smoother`. Source:
    [sarkka2021temporal].
    """
    name = "kalman_smoother_parallel"
    A, C, Q, R, y, m0, P0 = _checked(name, KALMAN_SMOOTHER, A, C, Q, R, y, m0, P0)
    m, P, (m_before, P_before) = _scanned(schedule, A, C, Q, R, y, m0, P0)
    if not len(m):
        return np.moveaxis(m, 0, -2), np.moveaxis(P, 0, -3)
    N, W = gain_factors(P[:-1], P_before[1:], A)
    H = transposed(W) @ N
    g = m[:-1] - applied(H, m_before[1:])
    spread = symmetric(P[:-1] - transposed(W) @ W)
    none = np.zeros_like(P[-1:])
    parts = ((H, none), (g, m[-1:]), (spread, P[-1:]))
    elements = tuple(np.concatenate(pair)[::-1] for pair in parts)
    _, m, P = associative_scan(_smoother_combined, elements, schedule)
    return np.moveaxis(m[::-1], 0, -2), np.moveaxis(P[::-1], 0, -3)


def _checked(name, op, *given):
    """The arguments as arrays; a message names the function called."""
    try:
        arrays = op.arrays(given, REFERENCE_TYPES)
        op.sizes(*arrays)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace(op.name, name, 1)) from None
    return arrays


def _scanned(schedule, A, C, Q, R, y, m0, P0):
    """Means and covariances of all steps, and those before each measurement; time first."""
    _, (m, P), _ = filtered(A, C, Q, R, y[..., :0, :], m0, P0)
    along, Q, R = np.moveaxis(y, -2, 0), symmetric(Q), symmetric(R)
    none = np.zeros_like(P, shape=(len(along), *P.shape))
    first_m, first_P = applied(A, m), symmetric(A @ P @ transposed(A) + Q)
    F, b, U, eta, J = _elements(A, C, Q, R, along, none)
    if len(along):
        (b[0], U[0], *_), _ = corrected(C, R, along[0], first_m, first_P)
        F[0] = 0
    _, means, spreads, _, _ = associative_scan(_filter_combined, (F, b, U, eta, J), schedule)
    earlier_m = np.concatenate([m[None], means])[:-1]
    earlier_P = np.concatenate([P[None], spreads])[:-1]
    before = applied(A, earlier_m), symmetric(A @ earlier_P @ transposed(A) + Q)
    return means, spreads, before


def _elements(A, C, Q, R, y, none):
    """One element for each measurement: as the filter from a known state, m = 0 and P = Q."""
    (b, U, K, a, inverse), _ = corrected(C, R, y, none[..., 0], Q + none)
    seen = C @ A
    J = transposed(seen) @ inverse @ seen
    return A - K @ seen, b, U, applied(transposed(seen), a), J


def _filter_combined(earlier, later):
    """Two spans, one after the other."""
    (F, b, U, eta, J), (F_later, b_later, U_later, eta_later, J_later) = earlier, later
    I = np.eye(F.shape[-1], dtype=F.dtype)
    both = np.concatenate([F, b[..., None] + U @ eta_later[..., None], U], axis=-1)
    moved, n = F_later @ eliminated(I + U @ J_later, both), F.shape[-1]
    rest = np.concatenate([(eta_later - applied(J_later, b))[..., None], J_later @ F], axis=-1)
    back = transposed(F) @ eliminated(I + J_later @ U, rest)
    spread = symmetric(moved[..., n + 1 :] @ transposed(F_later) + U_later)
    information = symmetric(back[..., 1:] + J)
    return moved[..., :n], moved[..., n] + b_later, spread, back[..., 0] + eta, information


def _smoother_combined(later, earlier):
    """Two spans in reverse time: `later` was scanned first."""
    (E, g, L), (E_later, g_later, L_later) = earlier, later
    spread = symmetric(E @ L_later @ transposed(E) + L)
    return E @ E_later, applied(E, g_later) + g, spread
