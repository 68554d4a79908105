"""Honest packed scans and single steps: resets by selection, flags, or separate sequences."""

from itertools import pairwise

import numpy as np

from honest import Honest
from honest.scan.base import backwards, one_earlier, tree
from refssm._numerics.broadcasting import unbroadcast
from refssm.scan import LINEAR_SCAN_FROM, LINEAR_SCAN_PACKED, LINEAR_STEP


def selecting(a, b, resets):
    """The state before each step is selected or zero, then it decays."""
    x = np.empty(b.shape, np.result_type(a, b))
    state = np.zeros_like(x[..., 0, :])
    for k in range(b.shape[-2]):
        first = resets[..., k, None]
        state = b[..., k, :] + np.where(first, 0, state) * np.where(first, 1, a[..., k, :])
        x[..., k, :] = state
    return x


def segmented(a, b, resets):
    """Hillis and Steele's scan: a span with a reset in it ignores all before it."""
    a, x = (y.astype(np.result_type(a, b)) for y in np.broadcast_arrays(a, b))
    ended = np.broadcast_to(resets[..., None] != 0, x.shape).copy()
    step = 1
    while step < x.shape[-2]:
        early, late = (..., slice(None, -step), slice(None)), (..., slice(step, None), slice(None))
        x[late] = np.where(ended[late], 0, a[late] * x[early]) + x[late]
        a[late] = a[late] * a[early]
        ended[late] = ended[late] | ended[early]
        step *= 2
    return x


def segmented_tree(a, b, resets):
    """Combine pairs, scan half of the steps, fill in the rest."""
    ended = np.broadcast_to(resets[..., None], b.shape)
    return _tree(a.astype(np.result_type(a, b)), b.astype(np.result_type(a, b)), ended)


def _tree(a, b, ended):
    length = b.shape[-2]
    if length < 2:
        return b
    even, odd = (..., slice(0, length - 1, 2), slice(None)), (..., slice(1, None, 2), slice(None))
    pair = np.where(ended[odd], 0, a[odd] * b[even]) + b[odd]
    x = b.copy()
    x[odd] = _tree(a[odd] * a[even], pair, ended[odd] | ended[even])
    rest = (..., slice(2, None, 2), slice(None))
    x[rest] = np.where(ended[rest], 0, a[rest] * x[..., 1 : length - 1 : 2, :]) + b[rest]
    return x


def in_pieces(a, b, resets):
    """Every sequence scanned by itself, by a tree."""
    x = np.empty(b.shape, np.result_type(a, b))
    for i in np.ndindex(*b.shape[:-2]):
        cuts = [0, *(k for k in np.flatnonzero(resets[i]) if k), b.shape[-2]]
        for start, stop in pairwise(cuts):
            piece = (*i, slice(start, stop))
            x[piece] = tree(a[piece], b[piece])
    return x


def segmented_vjp(dx, a, b, resets):
    """The adjoint by the segmented scan in reversed time, with resets where sequences end."""
    ends = np.concatenate([resets[..., 1:], np.ones_like(resets[..., :1])], axis=-1)
    g = backwards(lambda c, d: segmented(c, d, ends[..., ::-1]), dx, a)
    x = segmented(a, b, resets)
    before = np.where(resets[..., None], 0, one_earlier(x, np.zeros_like(x[..., 0, :])))
    return unbroadcast(before.conj() * g, a), unbroadcast(g, b), None


def sum_first(a, b, x):
    """b + x a, with the operands in the other order."""
    return b + x * a


def scan_of_one(a, b, x):
    """A scan of one step."""
    return LINEAR_SCAN_FROM.reference(a[..., None, :], b[..., None, :], x)[..., 0, :]


def scan_of_one_vjp(dx_next, a, b, x):
    """The gradients of a scan of one step."""
    step = [c[..., None, :] for c in (dx_next, a, b)]
    da, db, dx = LINEAR_SCAN_FROM.bare_vjp(*step, x)
    return da[..., 0, :], db[..., 0, :], dx


def in_parts(a, b, x):
    """Real and imaginary parts separately."""
    real = a.real * x.real - a.imag * x.imag + b.real
    kind = np.result_type(a, b, x)
    if kind.kind != "c":
        return real
    y = np.empty(real.shape, kind)
    y.real, y.imag = real, a.real * x.imag + a.imag * x.real + b.imag
    return y


PACKED, STEP = LINEAR_SCAN_PACKED, LINEAR_STEP
IMPLEMENTATIONS = [
    Honest(PACKED.name, "selecting", selecting),
    Honest(PACKED.name, "segmented", segmented, segmented_vjp),
    Honest(PACKED.name, "segmented_tree", segmented_tree),
    Honest(PACKED.name, "in_pieces", in_pieces),
    Honest(STEP.name, "sum_first", sum_first),
    Honest(STEP.name, "scan_of_one", scan_of_one, scan_of_one_vjp),
    Honest(STEP.name, "in_parts", in_parts),
]
