"""Honest linear scans: sequential, associative, chunked, by a matrix, compiled, entry by entry."""

import numpy as np

from honest import Honest
from honest.scan.base import SCANS, tree
from honest.scan.dense import IMPLEMENTATIONS as DENSE
from honest.scan.diagonal import IMPLEMENTATIONS as DIAGONAL
from honest.scan.packed import IMPLEMENTATIONS as PACKED
from refssm._numerics.broadcasting import unbroadcast
from refssm.conformance.planted.scan.right import hillis_steele, started


def associative_vjp(dx, a, b):
    """The adjoint by the associative scan in reversed time."""
    shifted = np.concatenate([a[..., 1:, :], np.zeros_like(a[..., :1, :])], axis=-2).conj()
    g = hillis_steele(shifted[..., ::-1, :], dx[..., ::-1, :])[..., ::-1, :]
    x = hillis_steele(a, b)
    before = np.concatenate([np.zeros_like(x[..., :1, :]), x[..., :-1, :]], axis=-2)
    return unbroadcast(before.conj() * g, a), unbroadcast(g, b)


def tree_vjp(dx, a, b):
    """Autodiff of the tree: parts of state and cotangent are multiplied, then added."""
    da, db = _tree_pullback(*(y.astype(np.result_type(dx, a, b)) for y in (dx, a, b)))
    return unbroadcast(da, a), unbroadcast(db, b)


def _tree_pullback(dx, a, b):
    """The gradient of one level of `tree`."""
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


IMPLEMENTATIONS = [
    Honest("linear_scan", "associative_vjp", hillis_steele, associative_vjp),
    Honest("linear_scan", "tree_autodiff", tree, tree_vjp),
    *(Honest("linear_scan", name, scan) for name, scan in SCANS.items()),
    *(Honest("linear_scan_from", name, started(scan)) for name, scan in SCANS.items()),
    *PACKED,
    *DENSE,
    *DIAGONAL,
]
