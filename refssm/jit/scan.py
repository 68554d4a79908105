"""Numba mirrors of refssm.scan: time outermost, the state across SIMD lanes, one pass each way."""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc makes its outputs itself, which pyright cannot see)

import numpy as np
from numba import guvectorize

from refssm._operator import COMPILED_TYPES
from refssm.broadcasting import unbroadcast
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM

KINDS = ("f4", "f8", "c8", "c16")


@guvectorize(
    [f"({t}[:,:], {t}[:,:], {t}[:,:])" for t in KINDS],
    "(l,n),(l,n)->(l,n)",
    nopython=True,
)
def _scan(a, b, x):
    for n in range(b.shape[1] if b.shape[0] else 0):
        x[0, n] = b[0, n]
    for k in range(1, b.shape[0]):
        for n in range(b.shape[1]):
            x[k, n] = a[k, n] * x[k - 1, n] + b[k, n]


@guvectorize(
    [f"({t}[:,:], {t}[:,:], {t}[:], {t}[:,:])" for t in KINDS],
    "(l,n),(l,n),(n)->(l,n)",
    nopython=True,
)
def _scan_from(a, b, x0, x):
    for n in range(b.shape[1] if b.shape[0] else 0):
        x[0, n] = a[0, n] * x0[n] + b[0, n]
    for k in range(1, b.shape[0]):
        for n in range(b.shape[1]):
            x[k, n] = a[k, n] * x[k - 1, n] + b[k, n]


@guvectorize(
    [f"({t}[:,:], {t}[:,:], {t}[:,:], {t}[:,:], {t}[:,:])" for t in KINDS],
    "(l,n),(l,n),(l,n)->(l,n),(l,n)",
    nopython=True,
)
def _scan_back(dx, a, x, da, g):
    """g_k = dx_k + a_{k+1}* g_{k+1} and da_k = x_{k-1}* g_k; da_0 is the caller's."""
    last = dx.shape[0] - 1
    for n in range(dx.shape[1] if dx.shape[0] else 0):
        g[last, n] = dx[last, n]
        da[0, n] = 0
    for k in range(last, 0, -1):
        for n in range(dx.shape[1]):
            da[k, n] = np.conj(x[k - 1, n]) * g[k, n]
            g[k - 1, n] = np.conj(a[k, n]) * g[k, n] + dx[k - 1, n]


def linear_scan(a, b):
    """Mirror of refssm.linear_scan."""
    return _scan(a, b)


def linear_scan_vjp(dx, a, b):
    """Mirror of refssm.linear_scan_vjp."""
    da, g = _scan_back(dx, a, _scan(a, b))
    return unbroadcast(da, a), unbroadcast(g, b)


def linear_scan_from(a, b, x0):
    """Mirror of refssm.linear_scan_from."""
    return _scan_from(a, b, x0)


def linear_scan_from_vjp(dx, a, b, x0):
    """Mirror of refssm.linear_scan_from_vjp."""
    da, g = _scan_back(dx, a, _scan_from(a, b, x0))
    first = g[..., :1, :]
    da[..., :1, :] = np.conj(x0)[..., None, :] * first
    dx0 = (np.conj(a[..., :1, :]) * first).sum(-2)
    return unbroadcast(da, a), unbroadcast(g, b), unbroadcast(dx0, x0)


linear_scan = LINEAR_SCAN.checked(linear_scan, COMPILED_TYPES)
linear_scan_vjp = LINEAR_SCAN.checked_vjp(linear_scan_vjp, COMPILED_TYPES)
linear_scan_from = LINEAR_SCAN_FROM.checked(linear_scan_from, COMPILED_TYPES)
linear_scan_from_vjp = LINEAR_SCAN_FROM.checked_vjp(linear_scan_from_vjp, COMPILED_TYPES)
