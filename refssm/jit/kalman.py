"""Numba mirrors of refssm.kalman: all in double precision, rounded once.

A step inverts S by Cholesky's factors, and takes K = P⁻Cᵀ S⁻¹ for all: P = P⁻ − K C P⁻. What the
steps made is stored for the gradients.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

from math import log, pi, sqrt

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.kalman import KALMAN_FILTER, KALMAN_SMOOTHER

LOG_2PI = log(2 * pi)
DOUBLE = ("f8",)
MADE = "(l,n),(l,n,n),(l,n,p),(l,p),(l,p,p)"  # of the steps: m⁻, P⁻, K, S⁻¹ e, S⁻¹


@part
def _product(X, Y, Z):
    """Z = X Y."""
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            Z[i, j] = 0
            for k in range(Y.shape[0]):
                Z[i, j] += X[i, k] * Y[k, j]


@part
def _mapped(M, x, y):
    """y = M x."""
    for i in range(y.size):
        y[i] = 0
        for k in range(x.size):
            y[i] += M[i, k] * x[k]


@part
def _symmetric(X):
    """X becomes (X + Xᵀ)/2."""
    for i in range(X.shape[0]):
        for j in range(i):
            X[i, j] = X[j, i] = (X[i, j] + X[j, i]) / 2


@part
def _around(M, X, Y):
    """Y = M X Mᵀ, symmetric as X is."""
    half = np.empty((M.shape[0], X.shape[1]))
    _product(M, X, half)
    _product(half, M.T, Y)
    _symmetric(Y)


@part
def _inverted(S, inverse):
    """S⁻¹ and log det S, from S = L Lᵀ; NaN if S is not positive."""
    p, logs = S.shape[0], 0.0
    L, N = np.zeros((p, p)), np.zeros((p, p))
    for i in range(p):
        for j in range(i + 1):
            rest = S[i, j]
            for k in range(j):
                rest -= L[i, k] * L[j, k]
            if i > j:
                L[i, j] = rest / L[j, j]
            else:
                L[i, i] = sqrt(rest) if rest > 0 else np.nan
                logs += 2 * log(L[i, i])
    for j in range(p):
        for i in range(j, p):
            rest = 1.0 if i == j else 0.0
            for k in range(j, i):
                rest -= L[i, k] * N[k, j]
            N[i, j] = rest / L[i, i]
    _product(N.T, N, inverse)
    return logs


@part
def _ahead(A, Q, m, P, m_before, P_before):
    """A m, and A P Aᵀ + Q."""
    _mapped(A, m, m_before)
    _around(A, P, P_before)
    for i in range(m.size):
        for j in range(m.size):
            P_before[i, j] += (Q[i, j] + Q[j, i]) / 2


@gufunc(f"(n,n),(p,n),(n,n),(p,p),(l,p),(n),(n,n)->(l,n),(l,n,n),(),{MADE}", kinds=DOUBLE)
def _filter(A, C, Q, R, y, m0, P0, m, P, logp, m_before, P_before, K, a, inverse):
    n, p = C.shape[1], C.shape[0]
    start, F, S, e = P0.copy(), np.empty((p, n)), np.empty((p, p)), np.empty(p)
    _symmetric(start)
    total = rest = 0.0
    for k in range(y.shape[0]):
        if k:
            _ahead(A, Q, m[k - 1], P[k - 1], m_before[k], P_before[k])
        else:
            _ahead(A, Q, m0, start, m_before[k], P_before[k])
        _product(C, P_before[k], F)
        _product(F, C.T, S)
        _mapped(C, m_before[k], e)
        for i in range(p):
            e[i] = y[k, i] - e[i]
            for j in range(p):
                S[i, j] += (R[i, j] + R[j, i]) / 2
        _symmetric(S)
        more = (p * LOG_2PI + _inverted(S, inverse[k])) / 2
        _product(F.T, inverse[k], K[k])
        _mapped(inverse[k], e, a[k])
        _product(K[k], F, P[k])
        for i in range(p):
            more += e[i] * a[k, i] / 2
        for i in range(n):
            m[k, i] = m_before[k, i]
            for j in range(p):
                m[k, i] += K[k, i, j] * e[j]
            for j in range(n):
                P[k, i, j] = P_before[k, i, j] - P[k, i, j]
        _symmetric(P[k])
        before, total = total, total + more  # what the sum of l terms rounds is kept beside it
        rest += before - (total - more) if abs(more) > abs(before) else more - (total - before)
    logp[0] = -(total + rest) if rest == rest else -total  # of infinities there is no rest


@part
def _through_measurement(g, C, m, P, K, a, inverse, of_m, of_P, dC, dR, dy):
    """dm and dP become dm⁻ and dP⁻; dy, and parts of dC and dR."""
    n, p = C.shape[1], C.shape[0]
    J, spread, along, near = np.empty((n, n)), np.empty((p, n)), np.empty(p), np.empty(n)
    seen, moved, kept = np.empty(n), np.empty(n), np.empty((n, n))
    _product(K, C, J)
    for i in range(n):
        for j in range(n):
            J[i, j] = (1.0 if i == j else 0.0) - J[i, j]
    _mapped(K.T, of_m, along)
    _mapped(P, of_m, near)
    _mapped(C.T, a, seen)
    _mapped(J.T, of_m, moved)
    _product(K.T, of_P, spread)
    for i in range(p):
        dy[i] = along[i] - g * a[i]
        for j in range(n):
            dC[i, j] += a[i] * near[j] - dy[i] * m[j] - g * K[j, i]
            for k in range(n):
                dC[i, j] -= 2 * spread[i, k] * P[k, j]
        for j in range(p):
            dR[i, j] += g * (a[i] * a[j] - inverse[i, j]) / 2 - along[i] * a[j] / 2
            dR[i, j] -= along[j] * a[i] / 2
            for k in range(n):
                dR[i, j] += spread[i, k] * K[k, j]
    _around(J.T, of_P, kept)
    _information(C, inverse, J, g)
    for i in range(n):
        of_m[i] = moved[i] + g * seen[i]
        for j in range(n):
            of_P[i, j] = kept[i, j] + (moved[i] * seen[j] + moved[j] * seen[i]) / 2
            of_P[i, j] += g * (seen[i] * seen[j] / 2) - J[i, j]


@part
def _information(C, inverse, X, g):
    """X = ½ g Cᵀ S⁻¹ C."""
    half = np.empty((inverse.shape[0], C.shape[1]))
    _product(inverse, C, half)
    _product(C.T, half, X)
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            X[i, j] *= g / 2


@part
def _through_time(A, m, P, of_m, of_P, dA, dQ):
    """dm⁻ and dP⁻ become dm and dP of the state before; parts of dA and dQ."""
    n = of_m.size
    AP, moved, kept = np.empty((n, n)), np.empty(n), np.empty((n, n))
    _product(A, P, AP)
    for i in range(n):
        for j in range(n):
            dQ[i, j] += of_P[i, j]
            dA[i, j] += of_m[i] * m[j]
            for k in range(n):
                dA[i, j] += 2 * of_P[i, k] * AP[k, j]
    _mapped(A.T, of_m, moved)
    _around(A.T, of_P, kept)
    for i in range(n):
        of_m[i] = moved[i]
        for j in range(n):
            of_P[i, j] = kept[i, j]


@gufunc(
    "(l,n),(l,n,n),(),(n,n),(p,n),(n),(n,n),(l,n),(l,n,n),(l,n,p),(l,p),(l,p,p)"
    "->(n,n),(p,n),(n,n),(p,p),(l,p),(n),(n,n)",
    kinds=DOUBLE,
)
def _filter_back(
    dm, dP, dlogp, A, C, m0, P0, m, P, K, a, inverse, dA, dC, dQ, dR, dy, dm0, dP0
):  # fmt: skip
    start, n = P0.copy(), m0.size
    _symmetric(start)
    dA[:], dC[:], dQ[:], dR[:], dm0[:], dP0[:] = 0, 0, 0, 0, 0, 0
    for k in range(dm.shape[0] - 1, -1, -1):
        for i in range(n):
            dm0[i] += dm[k, i]
            for j in range(n):
                dP0[i, j] += (dP[k, i, j] + dP[k, j, i]) / 2
        _through_measurement(
            dlogp[0], C, m[k], P[k], K[k], a[k], inverse[k], dm0, dP0, dC, dR, dy[k]
        )
        if k:
            _through_time(A, m[k - 1], P[k - 1], dm0, dP0, dA, dQ)
        else:
            _through_time(A, m0, start, dm0, dP0, dA, dQ)


@gufunc("(n,n),(l,n),(l,n,n),(l,n),(l,n,n)->(l,n),(l,n,n),(l,n,n),(l,n,n)", kinds=DOUBLE)
def _smooth(A, m, P, m_before, P_before, smooth, spread, H, inverse):
    """mˢ, Pˢ, H and (P⁻')⁻¹ of all steps; the last step has none of the two."""
    l, n = m.shape
    AP, apart = np.empty((n, n)), np.empty((n, n))
    for k in range(l - 1, -1, -1):
        smooth[k], spread[k] = m[k], P[k]
        if k == l - 1:
            H[k], inverse[k] = 0, 0
            continue
        _product(A, P[k], AP)
        _inverted(P_before[k + 1], inverse[k])
        _product(AP.T, inverse[k], H[k])
        for i in range(n):
            for j in range(n):
                smooth[k, i] += H[k, i, j] * (smooth[k + 1, j] - m_before[k + 1, j])
                apart[i, j] = spread[k + 1, i, j] - P_before[k + 1, i, j]
        _around(H[k], apart, AP)
        for i in range(n):
            for j in range(n):
                spread[k, i, j] += AP[i, j]


@part
def _joined(dm, dP, H, inverse, later, ahead, later_P, ahead_P, E):
    """E = (dm dᵀ + 2 dP H D) (P⁻')⁻¹."""
    n = dm.size
    D, HD, both = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    for i in range(n):
        for j in range(n):
            D[i, j] = later_P[i, j] - ahead_P[i, j]
    _product(H, D, HD)
    _product(dP, HD, both)
    for i in range(n):
        for j in range(n):
            both[i, j] = 2 * both[i, j] + dm[i] * (later[j] - ahead[j])
    _product(both, inverse, E)


@gufunc(
    "(l,n),(l,n,n),(n,n),(l,n),(l,n,n),(l,n),(l,n,n),(l,n),(l,n,n),(l,n,n),(l,n,n)"
    "->(l,n),(l,n,n),(n,n),(n,n)",
    kinds=DOUBLE,
)
def _smooth_back(
    dm, dP, A, m, P, m_before, P_before, smooth, spread, H, inverse, of_m, of_P, dA, dQ
):  # fmt: skip
    """Gradients of the filter's m and P, and parts of dA and dQ."""
    l, n = dm.shape
    E, to_P, ahead, AP = np.empty((n, n)), np.zeros((n, n)), np.empty((n, n)), np.empty((n, n))
    to_m, kept, EA = np.zeros(n), np.empty((n, n)), np.empty((n, n))
    dA[:], dQ[:] = 0, 0
    for k in range(l):
        for i in range(n):
            of_m[k, i] = dm[k, i] + to_m[i]
            for j in range(n):
                of_P[k, i, j] = (dP[k, i, j] + dP[k, j, i]) / 2 + to_P[i, j]
        if k == l - 1:
            break
        now = smooth[k + 1], m_before[k + 1], spread[k + 1], P_before[k + 1]
        _joined(of_m[k], of_P[k], H[k], inverse[k], *now, E)
        _mapped(H[k].T, of_m[k], to_m)
        _around(H[k].T, of_P[k], to_P)
        _product(H[k].T, E, ahead)
        _symmetric(ahead)
        for i in range(n):
            for j in range(n):
                ahead[i, j] = -to_P[i, j] - ahead[i, j]
                of_m[k, j] -= A[i, j] * to_m[i]
        _product(A, P[k], AP)
        _around(A.T, ahead, kept)
        _product(E, A, EA)
        for i in range(n):
            for j in range(n):
                dQ[i, j] += ahead[i, j]
                dA[i, j] -= to_m[i] * m[k, j]
                of_P[k, i, j] += kept[i, j] + (EA[i, j] + EA[j, i]) / 2
                for r in range(n):
                    dA[i, j] += E[r, i] * P[k, r, j] + 2 * ahead[i, r] * AP[r, j]


def _rounded(outputs, *given):
    """Outputs in the type of the arguments."""
    kind = np.result_type(*given)
    return tuple(np.asarray(x).astype(kind) for x in outputs)


@mirror(KALMAN_FILTER)
def kalman_filter(A, C, Q, R, y, m0, P0):
    given = A, C, Q, R, y, m0, P0
    return _rounded(_filter(*given)[:3], *given)


@mirror(KALMAN_FILTER)
def kalman_filter_vjp(dm, dP, dlogp, A, C, Q, R, y, m0, P0):
    given = A, C, Q, R, y, m0, P0
    m, P, _, _, _, *gain = _filter(*given)
    gradients = _filter_back(dm, dP, dlogp, A, C, m0, P0, m, P, *gain)
    return unbroadcast_each(_rounded(gradients, dm, *given), given)


@mirror(KALMAN_SMOOTHER)
def kalman_smoother(A, C, Q, R, y, m0, P0):
    given = A, C, Q, R, y, m0, P0
    m, P, _, m_before, P_before, *_ = _filter(*given)
    return _rounded(_smooth(A, m, P, m_before, P_before)[:2], *given)


@mirror(KALMAN_SMOOTHER)
def kalman_smoother_vjp(dm, dP, A, C, Q, R, y, m0, P0):
    given = A, C, Q, R, y, m0, P0
    m, P, logp, m_before, P_before, *gain = _filter(*given)
    steps = m, P, m_before, P_before
    of_m, of_P, more_A, more_Q = _smooth_back(dm, dP, A, *steps, *_smooth(A, *steps))
    back = _filter_back(of_m, of_P, 0 * logp, A, C, m0, P0, m, P, *gain)
    dA, dC, dQ, *others = back
    return unbroadcast_each(_rounded((dA + more_A, dC, dQ + more_Q, *others), dm, *given), given)
