"""CuPy mirrors of refssm.scan.dense: matrix products in log₂ l rounds, never a step at a time."""

from refssm.scan import DENSE_SCAN, DENSE_SCAN_FROM
from refssm_gpu._algebra.parts import adjoint, batch_of, conj
from refssm_gpu._algebra.recurrence import driven
from refssm_gpu._launching.arrays import common, namespace, transposed, unbroadcast_each
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
