"""Numba mirrors of refssm.scan.linear and .packed: loops over time, the state across SIMD lanes.

One kernel for each direction. A scan from rest has a reset at its first step; a single step is a
scan of length 1.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np
from numba import njit

from refssm._operator import COMPILED_TYPES
from refssm.broadcasting import unbroadcast_each
from refssm.jit._gufunc import begun, gufunc
from refssm.jit._rows import by_rows, row
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM, LINEAR_SCAN_PACKED, LINEAR_STEP
from refssm.scan.blocks import no_resets


@njit
def _copied(x, y):
    for n in range(y.size):
        y[n] = x[n]


@njit
def _advanced(a, before, b, x):
    """x = a before + b."""
    for n in range(x.size):
        x[n] = a[n] * before[n] + b[n]


@njit
def _turned_back(dx, a, da, g, carried):
    """g = dx + a_{k+1}* g_{k+1}, da = x_{k-1}* g where da held x_{k-1}, and a* g for the next step.
    Three loops: with more pairs of arrays to tell apart, LLVM uses no SIMD."""
    for n in range(g.size):
        g[n] = dx[n] + carried[n]
    for n in range(g.size):
        da[n] = np.conj(da[n]) * g[n]
    for n in range(g.size):
        carried[n] = np.conj(a[n]) * g[n]


@njit
def _added(dx, carried, g):
    for n in range(g.size):
        g[n] = dx[n] + carried[n]


@njit
def _cleared(x):
    for n in range(x.size):
        x[n] = 0


@njit
def _scan_rows(a, b, before, resets, x):
    """x_k = b_k at a reset, else a_k x_{k-1} + b_k."""
    for k in range(b.shape[0]):
        if resets[k]:
            _copied(row(b, k), row(x, k))
        else:
            _advanced(row(a, k), before, row(b, k), row(x, k))
        before = row(x, k)


@njit
def _scan_entries(a, b, x0, resets, x):
    """The same, entry by entry: short rows, and rows whose entries are apart."""
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


@gufunc("(l,n),(l,n),(n),(l)->(l,n)", flag=3)
def scan(a, b, x0, resets, x):
    """x_k = b_k at a reset, else a_k x_{k-1} + b_k."""
    if by_rows(a) and by_rows(b) and by_rows(x):
        _scan_rows(a, b, x0.copy(), resets, x)
    else:
        _scan_entries(a, b, x0, resets, x)


@njit
def _back_rows(dx, a, resets, da, g, carried):
    """g_k = dx_k + a_{k+1}* g_{k+1} and da_k = x_{k-1}* g_k, where da_k held x_{k-1}."""
    for k in range(dx.shape[0] - 1, -1, -1):
        if resets[k]:
            _added(row(dx, k), carried, row(g, k))
            _cleared(row(da, k))
            _cleared(carried)
        else:
            _turned_back(row(dx, k), row(a, k), row(da, k), row(g, k), carried)


@njit
def _back_entries(dx, a, resets, da, g, carried):
    """The same, entry by entry."""
    for k in range(dx.shape[0] - 1, -1, -1):
        for n in range(dx.shape[1]):
            g[k, n] = dx[k, n] + carried[n]
            if resets[k]:
                da[k, n], carried[n] = 0, 0
            else:
                da[k, n] = np.conj(da[k, n]) * g[k, n]
                carried[n] = np.conj(a[k, n]) * g[k, n]


@njit
def _turned_back_in_time(dx, dlast, a, resets, da, g, dx0):
    """All of the way back, from da_k = x_{k-1}; dx0 = a_0* g_0."""
    carried = dlast.copy()
    if by_rows(dx) and by_rows(a) and by_rows(da) and by_rows(g):
        _back_rows(dx, a, resets, da, g, carried)
    else:
        _back_entries(dx, a, resets, da, g, carried)
    for n in range(dx0.size):
        dx0[n] = carried[n]


@gufunc("(l,n),(n),(l,n),(l,n),(n),(l)->(l,n),(l,n),(n)", flag=5)
def scan_back(dx, dlast, a, x, x0, resets, da, g, dx0):
    """g_k = dx_k + a_{k+1}* g_{k+1}, da_k = x_{k-1}* g_k, and dx0 = a_0* g_0."""
    if dx.shape[0]:
        da[0], da[1:] = x0, x[:-1]
    _turned_back_in_time(dx, dlast, a, resets, da, g, dx0)


@gufunc("(l,n),(n),(l,n),(l,n),(n),(l)->(l,n),(l,n),(n)", flag=5)
def scan_vjp(dx, dlast, a, b, x0, resets, da, g, dx0):
    """The same from b. da holds the states until the way back needs them; no other array does."""
    if dx.shape[0]:
        da[0] = x0
        if by_rows(a) and by_rows(b) and by_rows(da):
            _scan_rows(a[:-1], b[:-1], x0.copy(), resets, da[1:])
        else:
            _scan_entries(a[:-1], b[:-1], x0, resets, da[1:])
    _turned_back_in_time(dx, dlast, a, resets, da, g, dx0)


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
    gradients = scan_vjp(dx, at_rest(dx), a, b, x0, resets)
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
