"""CuPy mirrors of refssm.scan.dense: blocks of time by matrix products, never a step at a time.

In a block of T steps, doubling adds A^d x_{k-d} for d = 1, 2, 4, …; the last states of the blocks
are a scan with A^T, done in the same way; then each block adds A^{j+1} times the state before it.
About log₂ T + 2 passes over the states, all of them products that cuBLAS does.
"""

import numpy as np

from refssm.scan import DENSE_SCAN, DENSE_SCAN_FROM
from refssm_gpu._launching.arrays import blocks, common, namespace, transposed, unbroadcast_each
from refssm_gpu._launching.checked import checked, checked_vjp

STEPS = 16  # of a block: a power of two


def _powers(A):
    """A, A², …, A^T as (…, T, n, n): each product doubles their number."""
    xp, powers = namespace(A), A[..., None, :, :]
    while powers.shape[-3] < STEPS:
        powers = xp.concat([powers, powers @ powers[..., -1:, :, :]], axis=-3)
    return powers


def _doubled(powers, b):
    """The scan of each block (…, blocks, T, n) from zeros."""
    xp, d = namespace(b), 1
    while d < b.shape[-2]:
        step = transposed(powers[..., d - 1, None, :, :])
        b = xp.concat([b[..., :d, :], b[..., d:, :] + b[..., :-d, :] @ step], axis=-2)
        d *= 2
    return b


def _scan(A, b):
    """x_k = A x_{k-1} + b_k from rest; `b` has all axes of the batch."""
    xp, powers = namespace(b), _powers(A)
    *batch, l, n = b.shape
    if l <= STEPS:
        return _doubled(powers, b[..., None, :, :])[..., 0, :, :]
    count, rest = blocks(l, STEPS), xp.zeros((*batch, -l % STEPS, n), dtype=b.dtype)
    x = xp.reshape(xp.concat([b, rest], axis=-2), (*batch, count, STEPS, n))
    x = _doubled(powers, x)
    after = _scan(powers[..., -1, :, :], x[..., -1, :])[..., :-1, :]
    stacked = xp.reshape(powers, (*A.shape[:-2], STEPS * n, n))
    carried = xp.reshape(after @ transposed(stacked), (*batch, count - 1, STEPS, n))
    x = xp.concat([x[..., :1, :, :], x[..., 1:, :, :] + carried], axis=-3)
    return xp.reshape(x, (*batch, count * STEPS, n))[..., :l, :]


def _states(A, b, x0=None):
    """The scan from x0, or from zeros, with all axes of the batch."""
    xp, others = namespace(b), () if x0 is None else (x0,)
    kind = common(A, b, *others)
    leads = (A.shape[:-2], b.shape[:-2], *(x.shape[:-1] for x in others))
    b = xp.broadcast_to(b, (*np.broadcast_shapes(*leads), *b.shape[-2:])).astype(kind)
    if x0 is not None:
        start = (x0[..., None, :] @ transposed(A)).astype(kind)
        b = xp.concat([b[..., :1, :] + start, b[..., 1:, :]], axis=-2)[..., : b.shape[-2], :]
    return _scan(A.astype(kind), b)


def _adjoint(dx, A):
    """g_k = dx_k + Aᴴ g_{k+1}, computed from the end; and Aᴴ."""
    AH = transposed(A).conj()
    return _states(AH, dx[..., ::-1, :])[..., ::-1, :], AH


def dense_scan(A, b):
    """Mirror of refssm.dense_scan, in blocks of time."""
    return _states(A, b)


def dense_scan_vjp(dx, A, b):
    """Mirror of refssm.dense_scan_vjp."""
    (g, _), x = _adjoint(dx, A), _states(A, b)
    dA = transposed(g[..., 1:, :]) @ x[..., :-1, :].conj()
    return unbroadcast_each((dA, g), (A, b))


def dense_scan_from(A, b, x0):
    """Mirror of refssm.dense_scan_from, in blocks of time."""
    return _states(A, b, x0)


def dense_scan_from_vjp(dx, A, b, x0):
    """Mirror of refssm.dense_scan_from_vjp."""
    (g, AH), x = _adjoint(dx, A), _states(A, b, x0)
    xp = namespace(x)
    start = xp.broadcast_to(x0[..., None, :], (*x.shape[:-2], 1, x.shape[-1]))
    before = xp.concat([start, x], axis=-2)[..., :-1, :]
    dA = transposed(g) @ before.conj()
    dx0 = (g[..., :1, :] @ transposed(AH)).sum(-2)
    return unbroadcast_each((dA, g, dx0), (A, b, x0))


dense_scan_vjp = checked_vjp(DENSE_SCAN, dense_scan_vjp)
dense_scan = checked(DENSE_SCAN, dense_scan)
dense_scan_from_vjp = checked_vjp(DENSE_SCAN_FROM, dense_scan_from_vjp)
dense_scan_from = checked(DENSE_SCAN_FROM, dense_scan_from)
