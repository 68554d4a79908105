"""CuPy mirrors of refssm.scan.diagonal and its other forms: cuBLAS around `linear_scan`'s kernel.

All states are stored, so B u and C x are matrix products. The gradients need arrays of that size
anyway.
"""

from refssm.scan import (
    DIAGONAL_SSM,
    DIAGONAL_SSM_BIDIRECTIONAL,
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
    DIAGONAL_SSM_STATEFUL,
    DIAGONAL_SSM_VARYING,
    DIAGONAL_SSM_VARYING_STATEFUL,
)
from refssm_gpu._algebra.parts import adjoint
from refssm_gpu._launching.arrays import namespace, transposed, unbroadcast_each
from refssm_gpu._launching.checked import mirror
from refssm_gpu.scan.linear import scan, scan_back


def mapped(M, x):
    """M x_k for every k; x is (…, l, n)."""
    return x @ transposed(M)


def outer(y, x):
    """Σ_k y_k x_kᴴ."""
    return transposed(y) @ x.conj()


def states(a, B, u, x0=None):
    """x_k = a_k x_{k-1} + B u_k from x0 or from zeros; `a` (l, n), or (1, n) if constant."""
    return scan(a, mapped(B, u), x0, at_rest=x0 is None)


def last_state(x, x0, y):
    """A copy of the last state of x (x0 if x is empty), with the batch axes of y."""
    last = x[..., -1, :] if x.shape[-2] else x0.astype(x.dtype)
    batch = y.shape[:-2]
    return namespace(x).broadcast_to(last, (*batch, x.shape[-1])).copy()


def pulled_back(dy, dlast, a, B, C, u, x0=None):
    """Gradients of y_k = C x_k and of the last state: (da, dB, dC, du, dx0), a and da (…, l, n)."""
    x = states(a, B, u, x0)
    dx = mapped(adjoint(C), dy)
    da, g, dx0 = scan_back(dx, a, x, x0, dlast=dlast, at_rest=x0 is None)
    du = mapped(adjoint(B), g)
    return da, outer(g, u), outer(dy, x), du, dx0


def _gradients(dy, dlast, arguments, x0=None):
    """Gradients from the outputs and the last state, for the arguments and x0."""
    a, B, C, D, u = arguments
    *gradients, du, dx0 = pulled_back(dy, dlast, a, B, C, u, x0)
    du = du + mapped(adjoint(D), dy)
    gradients = unbroadcast_each((*gradients, outer(dy, u), du), (a, B, C, D, u))
    return gradients if x0 is None else (*gradients, *unbroadcast_each((dx0,), (x0,)))


@mirror(DIAGONAL_SSM)
def diagonal_ssm(a, B, C, D, u):
    return mapped(C, states(a[..., None, :], B, u)) + mapped(D, u)


@mirror(DIAGONAL_SSM)
def diagonal_ssm_vjp(dy, a, B, C, D, u):
    da, *others = _gradients(dy, None, (a[..., None, :], B, C, D, u))
    return da[..., 0, :], *others


@mirror(DIAGONAL_SSM_VARYING)
def diagonal_ssm_varying(a, B, C, D, u):
    return mapped(C, states(a, B, u)) + mapped(D, u)


@mirror(DIAGONAL_SSM_VARYING)
def diagonal_ssm_varying_vjp(dy, a, B, C, D, u):
    return _gradients(dy, None, (a, B, C, D, u))


@mirror(DIAGONAL_SSM_STATEFUL)
def diagonal_ssm_stateful(a, B, C, D, u, x0):
    x = states(a[..., None, :], B, u, x0)
    y = mapped(C, x) + mapped(D, u)
    return y, last_state(x, x0, y)


@mirror(DIAGONAL_SSM_STATEFUL)
def diagonal_ssm_stateful_vjp(dy, dx, a, B, C, D, u, x0):
    da, *others = _gradients(dy, dx, (a[..., None, :], B, C, D, u), x0)
    return da[..., 0, :], *others


@mirror(DIAGONAL_SSM_VARYING_STATEFUL)
def diagonal_ssm_varying_stateful(a, B, C, D, u, x0):
    x = states(a, B, u, x0)
    y = mapped(C, x) + mapped(D, u)
    return y, last_state(x, x0, y)


@mirror(DIAGONAL_SSM_VARYING_STATEFUL)
def diagonal_ssm_varying_stateful_vjp(dy, dx, a, B, C, D, u, x0):
    return _gradients(dy, dx, (a, B, C, D, u), x0)


# Real outputs of complex modes, and both directions


def _skipped_back(dy, D, u):
    """Gradients of y_k = D u_k: (dD, du)."""
    return outer(dy, u), mapped(adjoint(D), dy)


def _real_gradients(dy, dlast, arguments, x0=None):
    """Gradients of y_k = 2 Re(C x_k) + D u_k and of the last state."""
    a, B, C, D, u = arguments
    da, dB, dC, du, dx0 = pulled_back(2 * dy, dlast, a[..., None, :], B, C, u, x0)
    dD, skipped = _skipped_back(dy, D, u)
    gradients = (da.sum(-2), dB, dC, dD, du.real + skipped)
    gradients = unbroadcast_each(gradients, (a, B, C, D, u))
    return gradients if x0 is None else (*gradients, *unbroadcast_each((dx0,), (x0,)))


@mirror(DIAGONAL_SSM_REAL)
def diagonal_ssm_real(a, B, C, D, u):
    return 2 * mapped(C, states(a[..., None, :], B, u)).real + mapped(D, u)


@mirror(DIAGONAL_SSM_REAL)
def diagonal_ssm_real_vjp(dy, a, B, C, D, u):
    return _real_gradients(dy, None, (a, B, C, D, u))


@mirror(DIAGONAL_SSM_REAL_STATEFUL)
def diagonal_ssm_real_stateful(a, B, C, D, u, x0):
    x = states(a[..., None, :], B, u, x0)
    y = 2 * mapped(C, x).real + mapped(D, u)
    return y, last_state(x, x0, y)


@mirror(DIAGONAL_SSM_REAL_STATEFUL)
def diagonal_ssm_real_stateful_vjp(dy, dx, a, B, C, D, u, x0):
    return _real_gradients(dy, dx, (a, B, C, D, u), x0)


BACKWARDS = (..., slice(None, None, -1), slice(None))


@mirror(DIAGONAL_SSM_BIDIRECTIONAL)
def diagonal_ssm_bidirectional(a, B, C, D, u):
    n, a = a.shape[-1], a[..., None, :]
    past, future = states(a, B, u), states(a, B, u[BACKWARDS])[BACKWARDS]
    return mapped(C[..., :n], past) + mapped(C[..., n:], future) + mapped(D, u)


@mirror(DIAGONAL_SSM_BIDIRECTIONAL)
def diagonal_ssm_bidirectional_vjp(dy, a, B, C, D, u):
    n, a_k = a.shape[-1], a[..., None, :]
    past = pulled_back(dy, None, a_k, B, C[..., :n], u)
    future = pulled_back(dy[BACKWARDS], None, a_k, B, C[..., n:], u[BACKWARDS])
    dC = namespace(u).concat([past[2], future[2]], axis=-1)
    dD, skipped = _skipped_back(dy, D, u)
    da, dB, du = past[0] + future[0], past[1] + future[1], past[3] + future[3][BACKWARDS]
    return unbroadcast_each((da.sum(-2), dB, dC, dD, du + skipped), (a, B, C, D, u))
