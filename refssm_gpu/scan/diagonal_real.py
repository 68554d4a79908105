"""CuPy mirrors of refssm.scan.diagonal_real and .bidirectional, built like those of .diagonal."""

from refssm.scan import (
    DIAGONAL_SSM_BIDIRECTIONAL,
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
)
from refssm_gpu._algebra.parts import adjoint
from refssm_gpu._launching.arrays import namespace, unbroadcast_each
from refssm_gpu._launching.checked import mirror
from refssm_gpu.scan.diagonal import last_state, mapped, outer, pulled_back, states


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
