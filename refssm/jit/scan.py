"""Numba mirrors of refssm.scan: time outermost, the state across SIMD lanes."""

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
    cache=True,
)
def _linear_scan(a, b, x):
    for n in range(b.shape[1]):
        if b.shape[0] > 0:
            x[0, n] = b[0, n]
    for k in range(1, b.shape[0]):
        for n in range(b.shape[1]):
            x[k, n] = a[k, n] * x[k - 1, n] + b[k, n]


@guvectorize(
    [f"({t}[:,:], {t}[:,:], {t}[:], {t}[:,:])" for t in KINDS],
    "(l,n),(l,n),(n)->(l,n)",
    nopython=True,
    cache=True,
)
def _linear_scan_from(a, b, x0, x):
    for n in range(b.shape[1]):
        if b.shape[0] > 0:
            x[0, n] = a[0, n] * x0[n] + b[0, n]
    for k in range(1, b.shape[0]):
        for n in range(b.shape[1]):
            x[k, n] = a[k, n] * x[k - 1, n] + b[k, n]


@guvectorize(
    [f"({t}[:,:], {t}[:,:], {t}[:,:])" for t in KINDS],
    "(l,n),(l,n)->(l,n)",
    nopython=True,
    cache=True,
)
def _adjoint_scan(dx, a, g):
    last = dx.shape[0] - 1
    for n in range(dx.shape[1]):
        if last >= 0:
            g[last, n] = dx[last, n]
    for k in range(last - 1, -1, -1):
        for n in range(dx.shape[1]):
            g[k, n] = np.conj(a[k + 1, n]) * g[k + 1, n] + dx[k, n]


@LINEAR_SCAN.checked_mirror
def linear_scan(a, b):
    """Mirror of refssm.linear_scan."""
    return _linear_scan(a, b)


@LINEAR_SCAN.checked_mirror_vjp
def linear_scan_vjp(dx, a, b):
    """Mirror of refssm.linear_scan_vjp."""
    x, g = _linear_scan(a, b), _adjoint_scan(dx, a)
    da = np.zeros_like(g)
    np.multiply(x[..., :-1, :].conj(), g[..., 1:, :], out=da[..., 1:, :])
    return unbroadcast(da, a), unbroadcast(g, b)
