"""Honest linear scans: sequential, associative, chunked, as a matrix, compiled, entry by entry."""

import numpy as np

from refssm.broadcasting import unbroadcast
from refssm.conformance.honest import Honest
from refssm.jit import scan as jit
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM


def sequential(a, b):
    """x ← x a + b: the operands the other way round."""
    x = np.empty_like(b, np.result_type(a, b))
    state = np.zeros_like(b[..., 0, :], x.dtype)
    for k in range(x.shape[-2]):
        state = b[..., k, :] + state * a[..., k, :]
        x[..., k, :] = state
    return x


def hillis_steele(a, b):
    """Associative, log₂ l passes over everything."""
    a, x = (y.astype(np.result_type(a, b)) for y in np.broadcast_arrays(a, b))
    step = 1
    while step < x.shape[-2]:
        x[..., step:, :] = a[..., step:, :] * x[..., :-step, :] + x[..., step:, :]
        a[..., step:, :] = a[..., step:, :] * a[..., :-step, :]
        step *= 2
    return x


def tree(a, b):
    """Associative, work-efficient: combine pairs, scan the half, fill in the rest."""
    length = b.shape[-2]
    if length < 2:
        return b.astype(np.result_type(a, b))
    even, odd = (..., slice(0, length - 1, 2), slice(None)), (..., slice(1, None, 2), slice(None))
    x = np.empty(b.shape, np.result_type(a, b))
    x[odd] = tree(a[odd] * a[even], a[odd] * b[even] + b[odd])
    x[..., 0, :] = b[..., 0, :]
    rest = (..., slice(2, None, 2), slice(None))
    x[rest] = a[rest] * x[..., 1 : length - 1 : 2, :] + b[rest]
    return x


def chunked(size):
    """Chunks scanned from rest, then the carry times the products of decays."""

    def scan(a, b):
        x = np.empty(b.shape, np.result_type(a, b))
        carry = np.zeros(b[..., 0, :].shape, x.dtype)
        for start in range(0, b.shape[-2], size):
            piece = (..., slice(start, start + size), slice(None))
            x[piece] = sequential(a[piece], b[piece])
            x[piece] += np.cumprod(a[piece], axis=-2) * carry[..., None, :]
            carry = x[piece][..., -1, :]
        return x

    return scan


def matrix(a, b):
    """x = L b with L_kj = a_{j+1} … a_k, row by row from the one above."""
    length = b.shape[-2]
    x = np.empty(b.shape, np.result_type(a, b))
    row = np.zeros((*b.shape[:-2], length, b.shape[-1]), a.dtype)
    for k in range(length):
        row *= a[..., k : k + 1, :]
        row[..., k, :] = 1
        past = (..., slice(0, k + 1), slice(None))  # not 0 · b beyond: NaN would come back in time
        x[..., k, :] = np.einsum("...jn,...jn->...n", row[past], b[past])
    return x


def entrywise(a, b):
    """A Python loop over every number."""
    x = np.empty(b.shape, np.result_type(a, b))
    for i in np.ndindex(*b.shape[:-2]):
        for n in range(b.shape[-1]):
            state = x.dtype.type(0)
            for k in range(b.shape[-2]):
                state = a[i][k, n] * state + b[i][k, n]
                x[(*i, k, n)] = state
    return x


def started(scan):
    """The scan from a state: a_0 x0 is part of the first input."""

    def scan_from(a, b, x0):
        first = a[..., :1, :] * x0[..., None, :] + b[..., :1, :]
        return scan(a, np.concatenate([first, b[..., 1:, :]], axis=-2))

    return scan_from


def associative_vjp(dx, a, b):
    """The adjoint scan by the associative one, run backwards."""
    shifted = np.concatenate([a[..., 1:, :], np.zeros_like(a[..., :1, :])], axis=-2).conj()
    g = hillis_steele(shifted[..., ::-1, :], dx[..., ::-1, :])[..., ::-1, :]
    x = hillis_steele(a, b)
    before = np.concatenate([np.zeros_like(x[..., :1, :]), x[..., :-1, :]], axis=-2)
    return unbroadcast(before.conj() * g, a), unbroadcast(g, b)


def tree_vjp(dx, a, b):
    """What autodiff makes of the tree: parts of state and cotangent are multiplied, then added."""
    da, db = _tree_pullback(*(y.astype(np.result_type(dx, a, b)) for y in (dx, a, b)))
    return unbroadcast(da, a), unbroadcast(db, b)


def _tree_pullback(dx, a, b):
    """One level of `tree`, backwards."""
    length = b.shape[-2]
    if length < 2:
        return np.zeros_like(dx), dx
    even, odd = (..., slice(0, length - 1, 2), slice(None)), (..., slice(1, None, 2), slice(None))
    rest = (..., slice(2, None, 2), slice(None))
    before = (..., slice(1, length - 1, 2), slice(None))
    pairs = a[odd] * a[even], a[odd] * b[even] + b[odd]
    da, db = np.zeros_like(dx), dx.copy()
    x = np.zeros_like(dx)
    x[odd] = tree(*pairs)
    da[rest] = dx[rest] * x[before].conj()
    d = dx.copy()
    d[before] += a[rest].conj() * dx[rest]
    dproduct, dstate = _tree_pullback(d[odd], *pairs)
    da[odd] += dproduct * a[even].conj() + dstate * b[even].conj()
    da[even] += dproduct * a[odd].conj()
    db[even] += dstate * a[odd].conj()
    db[odd] = dstate
    return da, db


SCANS = {
    "sequential": sequential,
    "hillis_steele": hillis_steele,
    "tree": tree,
    "chunked_16": chunked(16),
    "chunked_64": chunked(64),
    "matrix": matrix,
    "entrywise": entrywise,
}

IMPLEMENTATIONS = [
    Honest("linear_scan", "reference", LINEAR_SCAN.reference, LINEAR_SCAN.bare_vjp),
    Honest("linear_scan", "numba", jit.linear_scan, jit.linear_scan_vjp),
    Honest("linear_scan", "associative_vjp", hillis_steele, associative_vjp),
    Honest("linear_scan", "tree_autodiff", tree, tree_vjp),
    *(Honest("linear_scan", name, scan) for name, scan in SCANS.items()),
    Honest("linear_scan_from", "reference", LINEAR_SCAN_FROM.reference, LINEAR_SCAN_FROM.bare_vjp),
    Honest("linear_scan_from", "numba", jit.linear_scan_from, jit.linear_scan_from_vjp),
    *(Honest("linear_scan_from", name, started(scan)) for name, scan in SCANS.items()),
]
