"""CuPy mirrors of refssm.scan.dense: matrix products in log₂ l rounds, never a step at a time."""

from __future__ import annotations

from refssm.scan import DENSE_SCAN, DENSE_SCAN_FROM
from refssm_gpu._algebra.parts import adjoint, batch_of, conj
from refssm_gpu._launching.arrays import Array, common, namespace, transposed, unbroadcast_each
from refssm_gpu._launching.checked import mirror


def _states(A, b, x0=None):
    """The scan from x0, or from zeros, with all axes of the batch."""
    xp, kind = namespace(b), common(A, b, x0)
    batch = batch_of((A, b), (2, 2)) if x0 is None else batch_of((A, b, x0), (2, 2, 1))
    b = xp.broadcast_to(b, (*batch, *b.shape[-2:])).astype(kind)
    if x0 is not None:
        start = (x0[..., None, :] @ transposed(A)).astype(kind)
        b = xp.concat([b[..., :1, :] + start, b[..., 1:, :]], axis=-2)[..., : b.shape[-2], :]
    return driven(A.astype(kind), b)


def _back(dx, A):
    """g_k = dx_k + Aᴴ g_{k+1}, computed from the end."""
    return _states(adjoint(A), dx[..., ::-1, :])[..., ::-1, :]


@mirror(DENSE_SCAN)
def dense_scan(A, b):
    return _states(A, b)


@mirror(DENSE_SCAN)
def dense_scan_vjp(dx, A, b):
    g, x = _back(dx, A), _states(A, b)
    dA = transposed(g[..., 1:, :]) @ x[..., :-1, :].conj()
    return unbroadcast_each((dA, g), (A, b))


@mirror(DENSE_SCAN_FROM)
def dense_scan_from(A, b, x0):
    return _states(A, b, x0)


@mirror(DENSE_SCAN_FROM)
def dense_scan_from_vjp(dx, A, b, x0):
    g, x = _back(dx, A), _states(A, b, x0)
    xp = namespace(x)
    start = xp.broadcast_to(x0[..., None, :], (*x.shape[:-2], 1, x.shape[-1]))
    before = xp.concat([start, x], axis=-2)[..., :-1, :]
    dA = transposed(g) @ before.conj()
    dx0 = (g[..., :1, :] @ conj(A)).sum(-2)
    return unbroadcast_each((dA, g, dx0), (A, b, x0))


# A recurrence with one matrix for all times, in log₂ l rounds
#
#     x_{2j+1} = A² x_{2j−1} + (b_{2j+1} + A b_{2j}),   x_{2j} = b_{2j} + A x_{2j−1}
#
# The odd states are a recurrence of half the length with A²; the even ones follow from them. In all
# 2l products of A with a vector, as in a loop, but as products with matrices.


def driven(A: Array, b: Array) -> Array:
    """x_k = A x_{k−1} + b_k from rest, for (…, n, n) and (…, l, n); leading axes broadcast."""
    xp, l = namespace(A, b), b.shape[-2]
    if l < 2:
        return b
    step = xp.matrix_transpose(A)
    even, odd = b[..., 0::2, :], b[..., 1::2, :]
    pairs = odd + even[..., : odd.shape[-2], :] @ step
    at_odd = driven(A @ A if l > 3 else A, pairs)
    after = even[..., 1:, :] + at_odd[..., : even.shape[-2] - 1, :] @ step
    x = xp.empty((*at_odd.shape[:-2], l, b.shape[-1]), dtype=at_odd.dtype)
    x[..., 0::2, :] = xp.concat([_like(even[..., :1, :], at_odd), after], axis=-2)
    x[..., 1::2, :] = at_odd
    return x


def _like(first: Array, x: Array) -> Array:
    """`first` with the leading axes and the type of `x`."""
    xp = namespace(x)
    wide = xp.broadcast_to(first, (*x.shape[:-2], *first.shape[-2:]))
    return xp.astype(wide, x.dtype, copy=False)
