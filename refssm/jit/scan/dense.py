"""Numba mirrors of refssm.scan.dense: the matrix column by column, its rows across SIMD lanes.

The adjoint is the same kernel in reverse time, with Aᴴ. Where each step has a matrix of its own, a
row at a time is read as it lies in memory.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import begun, gufunc, started
from refssm.jit._compiling.mirror import mirror
from refssm.jit.scan.linear import at_rest
from refssm.scan import DENSE_SCAN, DENSE_SCAN_FROM
from refssm.scan.blocks import no_resets
from refssm.scan.dense import DENSE_VARYING


@gufunc("(n,n),(l,n),(n),(l)->(l,n)", flag=3)
def _scan(A, b, x0, resets, x):
    """x_k = b_k at a reset, else A x_{k-1} + b_k."""
    columns, before, sums = np.empty_like(A), np.empty_like(x0), np.empty_like(x0)
    for j in range(x0.size):
        before[j] = x0[j]
        for i in range(x0.size):
            columns[j, i] = A[i, j]
    for k in range(b.shape[0]):
        for i in range(x0.size):
            sums[i] = 0
        if not resets[k]:
            for j in range(x0.size):
                for i in range(x0.size):
                    sums[i] += columns[j, i] * before[j]
        for i in range(x0.size):
            before[i] = sums[i] + b[k, i]
            x[k, i] = before[i]


def _adjoint(dx, A):
    """g_k = dx_k + Aᴴ g_{k+1}, computed from the end; and Aᴴ."""
    AH = np.swapaxes(A, -1, -2).conj()
    return _scan(AH, dx[..., ::-1, :], at_rest(A), begun(dx.shape[-2]))[..., ::-1, :], AH


@mirror(DENSE_SCAN)
def dense_scan(A, b):
    return _scan(A, b, at_rest(A), begun(b.shape[-2]))


@mirror(DENSE_SCAN)
def dense_scan_vjp(dx, A, b):
    """BLAS computes the products over time."""
    g, _ = _adjoint(dx, A)
    x = _scan(A, b, at_rest(A), begun(b.shape[-2]))
    dA = np.swapaxes(g[..., 1:, :], -1, -2) @ x[..., :-1, :].conj()
    return unbroadcast_each((dA, g), (A, b))


@mirror(DENSE_SCAN_FROM)
def dense_scan_from(A, b, x0):
    return _scan(A, b, x0, no_resets(b.shape[-2]))


@mirror(DENSE_SCAN_FROM)
def dense_scan_from_vjp(dx, A, b, x0):
    """BLAS computes the products over time."""
    g, AH = _adjoint(dx, A)
    x = _scan(A, b, x0, no_resets(b.shape[-2]))
    start = np.broadcast_to(x0[..., None, :], (*x.shape[:-2], 1, x.shape[-1]))
    before = np.concatenate([start, x], axis=-2)[..., :-1, :]
    dA = np.swapaxes(g, -1, -2) @ before.conj()
    dx0 = (g[..., :1, :] @ np.swapaxes(AH, -1, -2)).sum(-2)
    return unbroadcast_each((dA, g, dx0), (A, b, x0))


@gufunc("(l,n,n),(l,n),(n),(l)->(l,n)", flag=3)
def _scan_varying(A, b, x0, resets, x):
    """x_k = b_k at a reset, else A_k x_{k-1} + b_k."""
    for k in range(b.shape[0]):
        for i in range(x0.size):
            x[k, i] = b[k, i]
            if not resets[k]:
                for j in range(x0.size):
                    x[k, i] += A[k, i, j] * (x[k - 1, j] if k else x0[j])


@gufunc("(l,n),(l,n,n),(l,n),(n),(l)->(l,n,n),(l,n),(n)", flag=4)
def _scan_varying_back(dx, A, x, x0, resets, dA, g, dx0):
    """g_k = dx_k + A_{k+1}ᴴ g_{k+1}, dA_k = g_k x_{k-1}ᴴ, and dx0 = A_0ᴴ g_0; zero at a reset."""
    for i in range(x0.size):
        dx0[i] = 0
    for k in range(dx.shape[0] - 1, -1, -1):
        for i in range(x0.size):
            g[k, i] = dx[k, i] + dx0[i]
        for i in range(x0.size):
            dx0[i] = 0
        for i in range(x0.size):
            for j in range(x0.size):
                dA[k, i, j] = 0
                if not resets[k]:
                    dA[k, i, j] = g[k, i] * np.conj(x[k - 1, j] if k else x0[j])
                    dx0[j] += np.conj(A[k, i, j]) * g[k, i]


def _run(arguments, x0, resets):
    A, b = arguments
    return (_scan_varying(A, b, *started(at_rest(A), x0, resets, b.shape[-2])),)


def _back(cotangents, arguments, x0, resets):
    (dx,), (A, b) = cotangents, arguments
    x0, resets = started(at_rest(A), x0, resets, b.shape[-2])
    x = _scan_varying(A, b, x0, resets)
    return unbroadcast_each(_scan_varying_back(dx, A, x, x0, resets), (A, b, x0))


(
    (dense_scan_varying, dense_scan_varying_vjp),
    (dense_scan_varying_from, dense_scan_varying_from_vjp),
    (dense_scan_varying_packed, dense_scan_varying_packed_vjp),
    (dense_step, dense_step_vjp),
) = DENSE_VARYING.mirrors(_run, _back, mirror)
