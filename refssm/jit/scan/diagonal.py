"""Numba mirrors of refssm.scan.diagonal and _stateful: BLAS around the kernel of linear_scan.

All states are stored, so B u and C x are matrix products. The gradients need arrays of that size
anyway.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.jit._compiling.gufunc import begun
from refssm.jit._compiling.mirror import mirror
from refssm.jit.scan.linear import at_rest, scan, scan_back
from refssm.scan import (
    DIAGONAL_SSM,
    DIAGONAL_SSM_STATEFUL,
    DIAGONAL_SSM_VARYING,
    DIAGONAL_SSM_VARYING_STATEFUL,
)
from refssm.scan.blocks import no_resets


def applied(M, x):
    """M x_k for every k."""
    return x @ np.swapaxes(M, -1, -2)


def outer(y, x):
    """Σ_k y_k x_kᴴ.

    BLAS takes no strides of 0, as of a broadcast cotangent. NumPy's own loop is slow and adds in
    plain order: 16384 equal terms lose 12 of 24 bits.
    """
    y, x = (np.ascontiguousarray(a) if 0 in a.strides else a for a in (y, x))
    return np.swapaxes(y, -1, -2) @ x.conj()


def states(a, B, u, x0, resets):
    """x_k = a_k x_{k-1} + B u_k; `a` (l, n), or (1, n) if constant in time."""
    b = applied(B, u)
    return scan(steady(a, b), b, x0, resets)


def steady(a, b):
    """`a` at every time of `b`; converted before broadcasting."""
    a = a.astype(np.result_type(a, b), copy=False)
    return np.broadcast_to(a, (*a.shape[:-2], *b.shape[-2:]))


def last_state(x, x0, y):
    """A copy of the last state of x (x0 if x is empty), with the batch axes of y."""
    last = x[..., -1, :] if x.shape[-2] else x0.astype(x.dtype)
    return with_batch(last, 1, y.shape[:-2])


def pulled_back(dy, dx_last, a, B, C, u, x0, resets):
    """Gradients of y_k = C x_k and of the last state: (da, dB, dC, du, dx0), a and da (…, l, n)."""
    x = states(a, B, u, x0, resets)
    dx = applied(np.swapaxes(C, -1, -2).conj(), dy)
    da, g, dx0 = scan_back(dx, dx_last, steady(a, dx), x, x0, resets)
    du = applied(np.swapaxes(B, -1, -2).conj(), g)
    return da, outer(g, u), outer(dy, x), du, dx0


def _gradients(dy, dx_last, arguments, x0, resets):
    """Gradients from the outputs and the last state, for the arguments and x0."""
    a, B, C, D, u = arguments
    da, dB, dC, du, dx0 = pulled_back(dy, dx_last, a, B, C, u, x0, resets)
    dD, skipped = outer(dy, u), applied(np.swapaxes(D, -1, -2).conj(), dy)
    gradients = (da, dB, dC, dD, du + skipped, dx0)
    return unbroadcast_each(gradients, (a, B, C, D, u, x0))


@mirror(DIAGONAL_SSM)
def diagonal_ssm(a, B, C, D, u):
    x = states(a[..., None, :], B, u, at_rest(a), begun(u.shape[-2]))
    return applied(C, x) + applied(D, u)


@mirror(DIAGONAL_SSM)
def diagonal_ssm_vjp(dy, a, B, C, D, u):
    rest, arguments = at_rest(a), (a[..., None, :], B, C, D, u)
    da, *others, _ = _gradients(dy, rest, arguments, rest, begun(u.shape[-2]))
    return da[..., 0, :], *others


@mirror(DIAGONAL_SSM_VARYING)
def diagonal_ssm_varying(a, B, C, D, u):
    x = states(a, B, u, at_rest(a), begun(u.shape[-2]))
    return applied(C, x) + applied(D, u)


@mirror(DIAGONAL_SSM_VARYING)
def diagonal_ssm_varying_vjp(dy, a, B, C, D, u):
    rest = at_rest(a)
    return _gradients(dy, rest, (a, B, C, D, u), rest, begun(u.shape[-2]))[:-1]


@mirror(DIAGONAL_SSM_STATEFUL)
def diagonal_ssm_stateful(a, B, C, D, u, x0):
    x = states(a[..., None, :], B, u, x0, no_resets(u.shape[-2]))
    y = applied(C, x) + applied(D, u)
    return y, last_state(x, x0, y)


@mirror(DIAGONAL_SSM_STATEFUL)
def diagonal_ssm_stateful_vjp(dy, dx, a, B, C, D, u, x0):
    arguments = (a[..., None, :], B, C, D, u)
    da, *others = _gradients(dy, dx, arguments, x0, no_resets(u.shape[-2]))
    return da[..., 0, :], *others


@mirror(DIAGONAL_SSM_VARYING_STATEFUL)
def diagonal_ssm_varying_stateful(a, B, C, D, u, x0):
    x = states(a, B, u, x0, no_resets(u.shape[-2]))
    y = applied(C, x) + applied(D, u)
    return y, last_state(x, x0, y)


@mirror(DIAGONAL_SSM_VARYING_STATEFUL)
def diagonal_ssm_varying_stateful_vjp(dy, dx, a, B, C, D, u, x0):
    return _gradients(dy, dx, (a, B, C, D, u), x0, no_resets(u.shape[-2]))
