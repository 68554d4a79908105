"""Numba mirrors of refssm.scan.diagonal_real and .bidirectional, built like those of .diagonal."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import begun
from refssm.jit._compiling.mirror import mirror
from refssm.jit.scan.diagonal import applied, last_state, outer, pulled_back, states
from refssm.jit.scan.linear import at_rest
from refssm.scan import (
    DIAGONAL_SSM_BIDIRECTIONAL,
    DIAGONAL_SSM_REAL,
    DIAGONAL_SSM_REAL_STATEFUL,
)
from refssm.scan.blocks import no_resets


def _skipped_back(dy, D, u):
    """Gradients of y_k = D u_k: (dD, du)."""
    return outer(dy, u), applied(np.swapaxes(D, -1, -2).conj(), dy)


def _real_gradients(dy, dx_last, arguments, x0, resets):
    """Gradients of y_k = 2 Re(C x_k) + D u_k and of the last state."""
    a, B, C, D, u = arguments
    da, dB, dC, du, dx0 = pulled_back(2 * dy, dx_last, a[..., None, :], B, C, u, x0, resets)
    dD, skipped = _skipped_back(dy, D, u)
    gradients = (da.sum(-2), dB, dC, dD, du.real + skipped, dx0)
    return unbroadcast_each(gradients, (a, B, C, D, u, x0))


@mirror(DIAGONAL_SSM_REAL)
def diagonal_ssm_real(a, B, C, D, u):
    x = states(a[..., None, :], B, u, at_rest(a), begun(u.shape[-2]))
    return 2 * applied(C, x).real + applied(D, u)


@mirror(DIAGONAL_SSM_REAL)
def diagonal_ssm_real_vjp(dy, a, B, C, D, u):
    rest = at_rest(a)
    return _real_gradients(dy, rest, (a, B, C, D, u), rest, begun(u.shape[-2]))[:-1]


@mirror(DIAGONAL_SSM_REAL_STATEFUL)
def diagonal_ssm_real_stateful(a, B, C, D, u, x0):
    x = states(a[..., None, :], B, u, x0, no_resets(u.shape[-2]))
    y = 2 * applied(C, x).real + applied(D, u)
    return y, last_state(x, x0, y)


@mirror(DIAGONAL_SSM_REAL_STATEFUL)
def diagonal_ssm_real_stateful_vjp(dy, dx, a, B, C, D, u, x0):
    return _real_gradients(dy, dx, (a, B, C, D, u), x0, no_resets(u.shape[-2]))


BACKWARDS = (..., slice(None, None, -1), slice(None))


@mirror(DIAGONAL_SSM_BIDIRECTIONAL)
def diagonal_ssm_bidirectional(a, B, C, D, u):
    n, a, begins = a.shape[-1], a[..., None, :], (at_rest(a), begun(u.shape[-2]))
    past = states(a, B, u, *begins)
    future = states(a, B, u[BACKWARDS], *begins)[BACKWARDS]
    return applied(C[..., :n], past) + applied(C[..., n:], future) + applied(D, u)


@mirror(DIAGONAL_SSM_BIDIRECTIONAL)
def diagonal_ssm_bidirectional_vjp(dy, a, B, C, D, u):
    n, rest, resets, a_k = a.shape[-1], at_rest(a), begun(u.shape[-2]), a[..., None, :]
    past = pulled_back(dy, rest, a_k, B, C[..., :n], u, rest, resets)
    other = dy[BACKWARDS], rest, a_k, B, C[..., n:], u[BACKWARDS], rest, resets
    future = pulled_back(*other)
    dC = np.concatenate([past[2], future[2]], axis=-1)
    dD, skipped = _skipped_back(dy, D, u)
    da, dB, du = past[0] + future[0], past[1] + future[1], past[3] + future[3][BACKWARDS]
    return unbroadcast_each((da.sum(-2), dB, dC, dD, du + skipped), (a, B, C, D, u))
