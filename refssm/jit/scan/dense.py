"""Numba mirrors of refssm.scan.dense: the matrix column by column, its rows across SIMD lanes.

The adjoint is the same kernel in reverse time, with Aᴴ.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import begun, gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit.scan.linear import at_rest
from refssm.scan import DENSE_SCAN, DENSE_SCAN_FROM
from refssm.scan.blocks import no_resets


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
