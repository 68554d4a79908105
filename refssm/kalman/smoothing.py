"""The smoother, from the last step to the first: Rauch, Tung and Striebel [rauch1965].

    H = P Aᵀ (P⁻')⁻¹,   mˢ = m + H (mˢ' − A m),   Pˢ = (I − H A) P + H Pˢ' Hᵀ

with ' for the next step and P⁻' = A P Aᵀ + Q. The first term of Pˢ is the covariance of x_k given
x_{k+1} and the measurements up to k: P − Wᵀ W, W = L⁻¹ A P, P⁻' = L Lᵀ; H = Wᵀ L⁻¹.
"""

from typing import Any, NamedTuple

import numpy as np

from refssm._declaration.contract import GAUSSIAN
from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm._numerics.whitening import whitened
from refssm.kalman.filtering import (
    SYSTEM,
    applied,
    filtered,
    over_time,
    product_of,
    pulled_through,
    symmetric,
    transposed,
)


def kalman_smoother(A, C, Q, R, y, m0, P0):
    """m_k and P_k with x_k ~ N(m_k, P_k) given all of y.

    Signature ``(n,n),(p,n),(n,n),(p,p),(l,p),(n),(n,n)->(l,n),(l,n,n)``: arguments, types, units
    and errors are those of `kalman_filter`. The last mean and covariance are the filter's. A P Aᵀ +
    Q must be positive definite, or results are NaN. NaN in a measurement reaches all means.

    Raises ValueError if sizes disagree, TypeError for other types. Source: [rauch1965].

    >>> import refssm
    >>> one, two = [[1.0]], [[2.0]]
    >>> m, P = refssm.kalman_smoother(one, one, one, two, [[4.0], [2.0]], [0.0], one)
    >>> m.tolist(), P.tolist()
    ([[2.0], [2.0]], [[[0.75]], [[1.0]]])
    """
    steps, (m, P), _ = filtered(A, C, Q, R, y, m0, P0)
    smoothed = _smoothed(steps, A)
    return over_time(m, [s.m for s in smoothed], 1), over_time(P, [s.P for s in smoothed], 2)


class SmoothStep(NamedTuple):
    """What one step of the smoother makes; the last step has no H and N."""

    m: Any
    P: Any
    H: Any = None
    N: Any = None  # L⁻¹


def _smoothed(steps, A):
    """All steps, the first one first."""
    made = []
    for k in range(len(steps) - 1, -1, -1):
        step, later = steps[k], made[0] if made else None
        made.insert(0, _backwards(step, steps[k + 1], later, A) if later else _last(step))
    return made


def _last(step):
    """The last step: the filter's."""
    return SmoothStep(step.m, step.P)


def _backwards(step, ahead, later, A):
    """One step from the filter's m and P: `ahead` is the filter's next step, `later` smoothed."""
    N, W = gain_factors(step.P, ahead.P_before, A)
    H = transposed(W) @ N
    m = step.m + applied(H, later.m - ahead.m_before)
    P = symmetric(step.P - transposed(W) @ W + H @ later.P @ transposed(H))
    return SmoothStep(m, P, H, N)


def gain_factors(P, P_ahead, A):
    """L⁻¹ and W = L⁻¹ A P of P⁻' = L Lᵀ."""
    n = P.shape[-1]
    I = np.broadcast_to(np.eye(n, dtype=P.dtype), P.shape)
    _, rows = whitened(P_ahead, np.concatenate([I, A @ P], axis=-1))
    return rows[..., :n], rows[..., n:]


def kalman_smoother_vjp(dm, dP, A, C, Q, R, y, m0, P0):
    """With d = mˢ' − A m, D = Pˢ' − P⁻' and E = (dm dᵀ + 2 dP H D) (P⁻')⁻¹, from the first step on:
    dmˢ' += Hᵀ dm,  dPˢ' += Hᵀ dP H;  dP⁻' = −Hᵀ dP H − sym(Hᵀ E),
    of the filter's m:  dm − Aᵀ Hᵀ dm,  of its P:  dP + sym(E A) + Aᵀ dP⁻' A,
    dA = −Hᵀ dm mᵀ + Eᵀ P + 2 dP⁻' A P,  dQ = dP⁻';

    then those of the filter. Returns `(dA, dC, dQ, dR, dy, dm0, dP0)`, shaped like the arguments.
    """
    steps, start, _ = filtered(A, C, Q, R, y, m0, P0)
    smoothed, dP = _smoothed(steps, A), symmetric(dP.astype(np.result_type(dP, A, C, *start)))
    to_m, to_P = (np.zeros_like(x) for x in start)
    dA, dQ, of_m, of_P = np.zeros_like(to_P), np.zeros_like(to_P), [], []
    for k, step in enumerate(steps):
        now_m, now_P = dm[..., k, :] + to_m, dP[..., k, :, :] + to_P
        if step is not steps[-1]:
            back = _turned_back(now_m, now_P, step, steps[k + 1], smoothed[k], smoothed[k + 1], A)
            now_m, now_P, to_m, to_P, more_A, more_Q = back
            dA, dQ = dA + more_A, dQ + more_Q
        of_m.append(now_m)
        of_P.append(now_P)
    along = over_time(start[0], of_m, 1), over_time(start[1], of_P, 2)
    none = np.zeros_like(y, shape=start[0].shape[:-1])  # of log p
    of_A, dC, of_Q, *others = pulled_through(*along, none, steps, start, A, C)
    return unbroadcast_each((dA + of_A, dC, dQ + of_Q, *others), (A, C, Q, R, y, m0, P0))


def _turned_back(dm, dP, step, ahead, smooth, later, A):
    """Gradients of the filter's m and P, of the later mˢ and Pˢ, and parts of dA and dQ."""
    H, N, back = smooth.H, smooth.N, transposed(smooth.H)
    d, D = later.m - ahead.m_before, later.P - ahead.P_before
    E = (product_of(dm, d) + 2 * (dP @ H @ D)) @ (transposed(N) @ N)
    to_m, to_P = applied(back, dm), symmetric(back @ dP @ H)
    ahead_P = -to_P - symmetric(back @ E)
    of_m = dm - applied(transposed(A), to_m)
    of_P = dP + symmetric(E @ A) + symmetric(transposed(A) @ ahead_P @ A)
    dA = transposed(E) @ step.P - product_of(to_m, step.m) + 2 * (ahead_P @ A @ step.P)
    return of_m, of_P, to_m, to_P, dA, ahead_P


KALMAN_SMOOTHER = Operator(
    reference=kalman_smoother,
    signature="(n,n),(p,n),(n,n),(p,p),(l,p),(n),(n,n)->(l,n),(l,n,n)",
    inputs=SYSTEM,
    outputs=("m", "P"),
    batch="d, d, d, d, d, d, d",
    traits=frozenset({"linear:y,m0->m"}),
    contract=GAUSSIAN,
    citation="rauch1965",
    lacks=frozenset({"gpu"}),  # a step needs the one before: dozens of launches for each
    tags=("RTS smoother", "Rauch-Tung-Striebel"),
)
kalman_smoother = KALMAN_SMOOTHER.checked(kalman_smoother)
kalman_smoother_vjp = KALMAN_SMOOTHER.checked_vjp(kalman_smoother_vjp)
