"""Honest recurrences with a matrix for each step: in loops over entries, in a tree of maps."""

import numpy as np

from honest import Honest
from honest.scan.base import one_earlier
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.scan import (
    DENSE_SCAN_VARYING,
    DENSE_SCAN_VARYING_FROM,
    DENSE_SCAN_VARYING_PACKED,
    DENSE_STEP,
)


def by_columns(A, x):
    """A x as a sum of columns, the last first."""
    return sum((A[..., j] * x[..., j, None] for j in reversed(range(x.shape[-1]))), 0 * x)


def loop(A, b, x0, resets) -> np.ndarray:
    """One step after the other; the matrix acts column by column."""
    batch = np.broadcast_shapes(A.shape[:-3], b.shape[:-2], x0.shape[:-1], resets.shape[:-1])
    x = np.empty((*batch, *b.shape[-2:]), np.result_type(A, b, x0))
    state = np.broadcast_to(x0, (*batch, b.shape[-1]))
    for k in range(b.shape[-2]):
        moved = by_columns(A[..., k, :, :], state)
        x[..., k, :] = state = b[..., k, :] + np.where(resets[..., k, None], 0, moved)
    return x


def hillis_steele(A, b, x0, resets) -> np.ndarray:
    """Affine maps combined over spans of 1, 2, 4, … steps; a span with a reset forgets."""
    batch = np.broadcast_shapes(A.shape[:-3], b.shape[:-2], x0.shape[:-1], resets.shape[:-1])
    kind, (l, n) = np.result_type(A, b, x0), b.shape[-2:]
    A = np.broadcast_to(A, (*batch, l, n, n)).astype(kind)
    x = np.broadcast_to(b, (*batch, l, n)).astype(kind)
    ended = np.broadcast_to(resets, (*batch, l)).copy()
    first = (A[..., :1, :, :] @ np.broadcast_to(x0, (*batch, n))[..., None, :, None])[..., 0]
    x[..., :1, :] += np.where(ended[..., :1, None], 0, first)
    ended[..., :1] = True
    step = 1
    while step < l:
        moved = (A[..., step:, :, :] @ x[..., :-step, :, None])[..., 0]
        x[..., step:, :] = x[..., step:, :] + np.where(ended[..., step:, None], 0, moved)
        product = A[..., step:, :, :] @ A[..., :-step, :, :]
        A[..., step:, :, :] = np.where(ended[..., step:, None, None], 0, product)
        ended[..., step:] = ended[..., step:] | ended[..., :-step]
        step *= 2
    return x


def back(dx, A, b, x0, resets):
    """The adjoint recurrence by einsum, and outer products."""
    x = loop(A, b, x0, resets)
    before, g = one_earlier(x, np.broadcast_to(x0, x[..., 0, :].shape)), np.empty_like(x)
    begins, carried = np.broadcast_to(resets, x.shape[:-1])[..., None], np.zeros_like(x[..., 0, :])
    for k in reversed(range(x.shape[-2])):
        g[..., k, :] = dx[..., k, :] + carried
        moved = np.einsum("...ij,...i->...j", A[..., k, :, :].conj(), g[..., k, :])
        carried = np.where(begins[..., k, :], 0, moved)
    dA = np.where(begins[..., None], 0, np.einsum("...i,...j->...ij", g, before.conj()))
    return unbroadcast_each((dA, g, carried), (A, b, x0))


def _forms(scan):
    """The scan from rest, from a state, and of packed sequences."""

    def rest(A, b):
        return np.zeros(b.shape[-1], np.result_type(A, b))

    def none(b):
        return np.zeros(b.shape[-2], bool)

    return (
        lambda A, b: scan(A, b, rest(A, b), none(b)),
        lambda A, b, x0: scan(A, b, x0, none(b)),
        lambda A, b, resets: scan(A, b, rest(A, b), resets),
    )


def _backs():
    """The VJPs of these forms."""

    def plain(dx, A, b):
        return back(dx, A, b, np.zeros(b.shape[-1], dx.dtype), np.zeros(b.shape[-2], bool))[:2]

    def stateful(dx, A, b, x0):
        return back(dx, A, b, x0, np.zeros(b.shape[-2], bool))

    def packed(dx, A, b, resets):
        return *back(dx, A, b, np.zeros(b.shape[-1], dx.dtype), resets)[:2], None

    return plain, stateful, packed


def _step_back(dx_next, A, b, x):
    dA = np.einsum("...i,...j->...ij", dx_next, x.conj())
    dx = np.einsum("...ij,...i->...j", A.conj(), dx_next)
    return unbroadcast_each((dA, dx_next, dx), (A, b, x))


FORMS = DENSE_SCAN_VARYING, DENSE_SCAN_VARYING_FROM, DENSE_SCAN_VARYING_PACKED
IMPLEMENTATIONS = [
    *(
        Honest(op.name, "by_columns", scan, vjp)
        for op, scan, vjp in zip(FORMS, _forms(loop), _backs(), strict=True)
    ),
    *(
        Honest(op.name, "hillis_steele", scan)
        for op, scan in zip(FORMS, _forms(hillis_steele), strict=True)
    ),
    Honest(DENSE_STEP.name, "by_columns", lambda A, b, x: b + by_columns(A, x), _step_back),
    Honest(DENSE_STEP.name, "einsum", lambda A, b, x: np.einsum("...ij,...j->...i", A, x) + b),
]
