"""CuPy mirrors of refssm.scan.dense: matrix products in log₂ l rounds, never a step at a time."""

from __future__ import annotations

from refssm.scan import DENSE_SCAN, DENSE_SCAN_FROM
from refssm.scan.dense import DENSE_VARYING
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


# A matrix for each step, in log₂ l rounds
#
#     x_{2j+1} = A_{2j+1} A_{2j} x_{2j−1} + (b_{2j+1} + A_{2j+1} b_{2j})
#     x_{2j}   = b_{2j} + A_{2j} x_{2j−1}
#
# A pair of steps begins anew if one of the two does; what came before is selected away, not
# multiplied by 0.


def _driven_varying(A: Array, b: Array, begins: Array) -> Array:
    """x_k = A_k x_{k−1} + b_k, and b_k where a sequence begins; all with the same leading axes."""
    xp, l = namespace(A, b), b.shape[-2]
    if l < 2:
        return b
    n, even, odd = l // 2, slice(0, None, 2), slice(1, None, 2)
    late, first = A[..., odd, :, :], begins[..., odd]
    pairs = b[..., odd, :] + xp.where(
        first[..., None], 0, _applied(late, b[..., even, :][..., :n, :])
    )
    x = xp.empty_like(b)
    x[..., odd, :] = _driven_varying(
        late @ A[..., even, :, :][..., :n, :, :], pairs, first | begins[..., even][..., :n]
    )
    x[..., even, :] = b[..., even, :]
    after = _applied(A[..., 2::2, :, :], x[..., odd, :][..., : (l - 1) // 2, :])
    x[..., 2::2, :] += xp.where(begins[..., 2::2, None], 0, after)
    return x


def _applied(A: Array, x: Array) -> Array:
    """A_k x_k for every k."""
    return (A @ x[..., None])[..., 0]


def _full(arguments, x0, resets):
    """The arguments, the state and the flags with all leading axes, of one type."""
    A, b = arguments
    xp, kind = namespace(b), common(A, b, x0)
    given, ranks = ((A, b), (3, 2)) if x0 is None else ((A, b, x0), (3, 2, 1))
    batch = batch_of(given, ranks) if resets is None else batch_of((*given, resets), (*ranks, 1))
    l, n = b.shape[-2:]
    start = xp.zeros((*batch, n), dtype=kind) if x0 is None else _wide(x0, (*batch, n), kind)
    begins = xp.zeros((*batch, l), dtype=bool)
    begins[..., :1] = x0 is None
    begins = begins if resets is None else begins | resets
    return _wide(A, (*batch, l, n, n), kind), _wide(b, (*batch, l, n), kind), start, begins


def _wide(x: Array, shape, kind) -> Array:
    return namespace(x).broadcast_to(x, shape).astype(kind)


def _states_varying(A, b, start, begins):
    """The states; the first one adds A_0 x0."""
    xp, b = namespace(b), b.copy()
    first = _applied(A[..., :1, :, :], start[..., None, :])
    b[..., :1, :] += xp.where(begins[..., :1, None], 0, first)
    return _driven_varying(A, b, begins)


def _run(arguments, x0, resets):
    return (_states_varying(*_full(arguments, x0, resets)),)


def _back_varying(cotangents, arguments, x0, resets):
    """g_k = dx_k + A_{k+1}ᴴ g_{k+1} by the same rounds in reverse time, and its products."""
    (dx,), (A, b, start, begins) = cotangents, _full(arguments, x0, resets)
    xp, reverse = namespace(b), (..., slice(None, None, -1))
    x, back = _states_varying(A, b, start, begins), adjoint(A)
    later = xp.concat([back[..., 1:, :, :], back[..., :1, :, :]], axis=-3)[..., ::-1, :, :]
    ends = xp.concat([begins[..., 1:], xp.ones_like(begins[..., :1])], axis=-1)[reverse]
    g = _driven_varying(later, dx.astype(x.dtype)[..., ::-1, :], ends)[..., ::-1, :]
    before = xp.concat([start[..., None, :], x], axis=-2)[..., :-1, :]
    dA = xp.where(begins[..., None, None], 0, g[..., :, None] * before[..., None, :].conj())
    first = xp.where(begins[..., :1, None], 0, _applied(back[..., :1, :, :], g[..., :1, :]))
    return unbroadcast_each((dA, g, first.sum(-2)), (*arguments, start if x0 is None else x0))


(
    (dense_scan_varying, dense_scan_varying_vjp),
    (dense_scan_varying_from, dense_scan_varying_from_vjp),
    (dense_scan_varying_packed, dense_scan_varying_packed_vjp),
    (dense_step, dense_step_vjp),
) = DENSE_VARYING.mirrors(_run, _back_varying, mirror)
