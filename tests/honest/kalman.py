"""Honest Kalman filters and smoothers: gains, Joseph's form, scans, in double."""

import numpy as np

import refssm
from honest import Honest
from refssm._declaration.arguments import several
from refssm._numerics.broadcasting import with_batch
from refssm.kalman import KALMAN_FILTER, KALMAN_SMOOTHER
from refssm.kalman.filtering import applied, symmetric, transposed


def _begun(A, C, Q, R, y, m0, P0):
    """The mean and covariance before, and all leading axes."""
    cores = zip((A, C, Q, R, y, m0, P0), (2, 2, 2, 2, 2, 1, 2), strict=True)
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - core] for x, core in cores))
    kind = np.result_type(A, C, Q, R, y, m0, P0)
    return with_batch(m0, 1, batch).astype(kind), with_batch(P0, 2, batch).astype(kind)


def by_gains(corrected):
    """The filter with K by a solve; `corrected` makes P of P⁻, K, C and R."""

    def form(A, C, Q, R, y, m0, P0):
        m, P = _begun(A, C, Q, R, y, m0, P0)
        kind, l, n = np.finfo(m.dtype), y.shape[-2], m.shape[-1]
        means, spreads = np.empty((*m.shape[:-1], l, n), m.dtype), []
        logp = np.zeros(m.shape[:-1], m.dtype)
        for k in range(l):
            m, P = applied(A, m), A @ P @ transposed(A) + Q
            S, e = C @ P @ transposed(C) + R, y[..., k, :] - applied(C, m)
            K = _solved(S, C @ P)
            logp = logp - (np.linalg.slogdet(2 * np.asarray(np.pi, kind.dtype) * S)[1]) / 2
            logp = logp - (e * _solved_vector(S, e)).sum(-1) / 2
            m, P = m + applied(transposed(K), e), corrected(P, transposed(K), C, R)
            means[..., k, :] = m
            spreads.append(P)
        stacked = np.stack(spreads, -3) if spreads else np.empty((*P.shape[:-2], 0, n, n), P.dtype)
        return means, stacked.astype(m.dtype), logp.astype(m.dtype)

    return form


def _solved(S, X):
    """S⁻¹ X; NaN for a slice with NaN."""
    known = np.isfinite(S).all((-2, -1), keepdims=True)
    found = np.linalg.solve(np.where(known, S, np.eye(S.shape[-1], dtype=S.dtype)), X)
    return np.where(known, found, np.nan).astype(S.dtype)


def _solved_vector(S, x):
    return _solved(S, x[..., None])[..., 0]


def short(P, K, C, R):
    """(I − K C) P⁻."""
    del R
    return symmetric(P - K @ C @ P)


def joseph(P, K, C, R):
    """(I − K C) P⁻ (I − K C)ᵀ + K R Kᵀ."""
    J = np.eye(P.shape[-1], dtype=P.dtype) - K @ C
    return J @ P @ transposed(J) + K @ R @ transposed(K)


def of_gains(A, C, Q, R, y, m0, P0):
    """The smoother as it is printed: P + H (Pˢ' − P⁻') Hᵀ."""
    means, spreads, _ = by_gains(short)(A, C, Q, R, y, m0, P0)
    means, spreads = means.copy(), spreads.copy()
    for k in range(y.shape[-2] - 2, -1, -1):
        m, P = means[..., k, :], spreads[..., k, :, :]
        ahead = A @ P @ transposed(A) + Q
        H = transposed(_solved(ahead, A @ P))
        means[..., k, :] = m + applied(H, means[..., k + 1, :] - applied(A, m))
        spreads[..., k, :, :] = symmetric(
            P + H @ (spreads[..., k + 1, :, :] - ahead) @ transposed(H)
        )
    return means, spreads


def in_another_order(op, vjp=False):
    """States and measured numbers in reverse order."""
    function = op.bare_vjp if vjp else op.reference
    cores = [d for dims in (op.output_dims if vjp else ()) for d in [len(dims)]]

    def turned(x, core):
        return np.flip(x, tuple(range(-core, 0))) if core else x

    def form(*arrays):
        cotangents, given = arrays[: len(cores)], arrays[len(cores) :]
        given = [turned(x, _core(i)) for i, x in enumerate(given)]
        ranks = (1, 2, 0)
        found = function(*(turned(x, ranks[j]) for j, x in enumerate(cotangents)), *given)
        if vjp:
            return tuple(turned(x, _core(i)) for i, x in enumerate(found))
        return tuple(turned(x, ranks[j]) for j, x in enumerate(found))

    return form


def _core(i):
    """How many of an argument's last axes count states or measured numbers."""
    return (2, 2, 2, 2, 1, 1, 2)[i]


def in_double(op, vjp=False):
    """The reference or its VJP in double precision, rounded at the end."""
    function = op.bare_vjp if vjp else op.reference

    def form(*arrays):
        kind = np.result_type(*arrays)
        wide = (x.astype(np.result_type(x, np.float64)) for x in arrays)
        return tuple(np.asarray(x).astype(kind) for x in several(function(*wide)))

    return form


def in_parallel(op):
    """The scan of this operator by Särkkä's elements."""
    return getattr(refssm, f"{op.name}_parallel")


def _rows(op):
    vjp_in_order, vjp_in_double = in_another_order(op, True), in_double(op, True)
    return [
        Honest(op.name, "in_parallel", in_parallel(op)),
        Honest(op.name, "in_another_order", in_another_order(op), vjp_in_order),
        Honest(op.name, "in_double", in_double(op), vjp_in_double),
    ]


IMPLEMENTATIONS = [
    *_rows(KALMAN_FILTER),
    *_rows(KALMAN_SMOOTHER),
    Honest(KALMAN_FILTER.name, "by_gains", by_gains(short)),
    Honest(KALMAN_FILTER.name, "joseph", by_gains(joseph)),
    Honest(KALMAN_SMOOTHER.name, "of_gains", of_gains),
]
