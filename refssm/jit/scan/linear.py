"""Numba mirrors of refssm.scan.linear and .packed: loops over time, the state across SIMD lanes.

One kernel for each direction. A scan from rest has a reset at its first step; a single step is a
scan of length 1.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._operator import COMPILED_TYPES
from refssm.broadcasting import unbroadcast_each
from refssm.jit._gufunc import begun, gufunc
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM, LINEAR_SCAN_PACKED, LINEAR_STEP
from refssm.scan.blocks import no_resets


@gufunc("(l,n),(l,n),(n),(l)->(l,n)", flag=3)
def scan(a, b, x0, resets, x):
    """x_k = b_k at a reset, else a_k x_{k-1} + b_k."""
    for k in range(b.shape[0]):
        if resets[k]:
            for n in range(b.shape[1]):
                x[k, n] = b[k, n]
        elif k == 0:
            for n in range(b.shape[1]):
                x[k, n] = a[k, n] * x0[n] + b[k, n]
        else:
            for n in range(b.shape[1]):
                x[k, n] = a[k, n] * x[k - 1, n] + b[k, n]


@gufunc("(l,n),(n),(l,n),(l,n),(n),(l)->(l,n),(l,n),(n)", flag=5)
def scan_back(dx, dlast, a, x, x0, resets, da, g, dx0):
    """g_k = dx_k + a_{k+1}* g_{k+1}, da_k = x_{k-1}* g_k, and dx0 = a_0* g_0."""
    for n in range(dx.shape[1]):
        dx0[n] = dlast[n]
    for k in range(dx.shape[0] - 1, -1, -1):
        if resets[k]:
            for n in range(dx.shape[1]):
                g[k, n] = dx[k, n] + dx0[n]
                da[k, n], dx0[n] = 0, 0
        elif k == 0:
            for n in range(dx.shape[1]):
                g[k, n] = dx[k, n] + dx0[n]
                da[k, n], dx0[n] = np.conj(x0[n]) * g[k, n], np.conj(a[k, n]) * g[k, n]
        else:
            for n in range(dx.shape[1]):
                g[k, n] = dx[k, n] + dx0[n]
                da[k, n], dx0[n] = np.conj(x[k - 1, n]) * g[k, n], np.conj(a[k, n]) * g[k, n]


def at_rest(a) -> np.ndarray:
    """A state of zeros."""
    return np.zeros(a.shape[-1], np.finfo(a.dtype).dtype)


def linear_scan(a, b):
    """Mirror of refssm.linear_scan."""
    return scan(a, b, at_rest(a), begun(a.shape[-2]))


def linear_scan_vjp(dx, a, b):
    """Mirror of refssm.linear_scan_vjp."""
    return _pulled_back(dx, a, b, at_rest(a), begun(a.shape[-2]))[:2]


def _pulled_back(dx, a, b, x0, resets):
    """Gradients of the states, for a, b and x0."""
    gradients = scan_back(dx, at_rest(dx), a, scan(a, b, x0, resets), x0, resets)
    return unbroadcast_each(gradients, (a, b, x0))


def linear_scan_from(a, b, x0):
    """Mirror of refssm.linear_scan_from."""
    return scan(a, b, x0, no_resets(a.shape[-2]))


def linear_scan_from_vjp(dx, a, b, x0):
    """Mirror of refssm.linear_scan_from_vjp."""
    return _pulled_back(dx, a, b, x0, no_resets(a.shape[-2]))


def linear_scan_packed(a, b, resets):
    """Mirror of refssm.linear_scan_packed."""
    return scan(a, b, at_rest(a), resets | begun(a.shape[-2]))


def linear_scan_packed_vjp(dx, a, b, resets):
    """Mirror of refssm.linear_scan_packed_vjp."""
    return *_pulled_back(dx, a, b, at_rest(a), resets | begun(a.shape[-2]))[:2], None


def linear_step(a, b, x):
    """Mirror of refssm.linear_step."""
    return scan(a[..., None, :], b[..., None, :], x, no_resets(1))[..., 0, :]


def linear_step_vjp(dx_next, a, b, x):
    """Mirror of refssm.linear_step_vjp: two products, in NumPy."""
    db = dx_next.astype(np.result_type(dx_next, a, b, x))
    return unbroadcast_each((x.conj() * db, db, a.conj() * db), (a, b, x))


linear_scan = LINEAR_SCAN.checked(linear_scan, COMPILED_TYPES)
linear_scan_vjp = LINEAR_SCAN.checked_vjp(linear_scan_vjp, COMPILED_TYPES)
linear_scan_from = LINEAR_SCAN_FROM.checked(linear_scan_from, COMPILED_TYPES)
linear_scan_from_vjp = LINEAR_SCAN_FROM.checked_vjp(linear_scan_from_vjp, COMPILED_TYPES)
linear_scan_packed = LINEAR_SCAN_PACKED.checked(linear_scan_packed, COMPILED_TYPES)
linear_scan_packed_vjp = LINEAR_SCAN_PACKED.checked_vjp(linear_scan_packed_vjp, COMPILED_TYPES)
linear_step = LINEAR_STEP.checked(linear_step, COMPILED_TYPES)
linear_step_vjp = LINEAR_STEP.checked_vjp(linear_step_vjp, COMPILED_TYPES)
