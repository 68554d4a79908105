"""Honest recurrences with a matrix: by doubled powers, in a tree of affine maps, in blocks."""

import numpy as np

from honest import Honest
from honest.scan.base import one_earlier
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.scan import DENSE_SCAN, DENSE_SCAN_FROM


def applied(A, x):
    """A x_k for every k."""
    return x @ A.mT


def by_matmul(A, b):
    """One matrix-vector product per step."""
    x = b.astype(np.result_type(A, b))
    for k in range(1, b.shape[-2]):
        x[..., k, :] += (A @ x[..., k - 1, :, None])[..., 0]
    return x


def doubling(A, b):
    """Hillis and Steele's scan: x_k += A^s x_{k−s} for s = 1, 2, 4, …"""
    x, power, step = b.astype(np.result_type(A, b)), A, 1
    while step < x.shape[-2]:
        x[..., step:, :] = x[..., step:, :] + applied(power, x[..., :-step, :])
        power, step = power @ power, 2 * step
    return x


def tree(A, b):
    """Two steps are one step of A²: scan half of the steps, fill in the rest."""
    length = b.shape[-2]
    x = b.astype(np.result_type(A, b))
    if length < 2:
        return x
    early, late = x[..., 0 : length - 1 : 2, :], x[..., 1::2, :]
    scanned = tree(A @ A, applied(A, early) + late)
    x[..., 1::2, :] = scanned
    x[..., 2::2, :] += applied(A, scanned[..., : (length - 1) // 2, :])
    return x


def in_blocks(size):
    """Blocks from zero states by a table of powers, then A, A², … times the state before each."""

    def scan(A, b):
        x, powers = b.astype(np.result_type(A, b)), [A]
        for _ in range(size - 1):
            powers.append(A @ powers[-1])
        for start in range(0, b.shape[-2], size):
            for k in range(start, min(start + size, b.shape[-2])):
                for j in range(start, k):
                    x[..., k, :] += (powers[k - j - 1] @ b[..., j, :, None])[..., 0]
                if start:
                    before = x[..., start - 1, :, None]
                    x[..., k, :] += (powers[k - start] @ before)[..., 0]
        return x

    return scan


def started(scan):
    """The scan from a state: A x0 is added to the first input."""

    def scan_from(A, b, x0):
        first = applied(A, x0[..., None, :]) + b[..., :1, :]
        return scan(A, np.concatenate([first, b[..., 1:, :]], axis=-2))

    return scan_from


def doubling_vjp(dx, A, b):
    """The adjoint scan by doubling, in reversed time."""
    return _doubling_back(dx, A, b, np.zeros_like(b[..., 0, :]))[:2]


def _doubling_back(dx, A, b, x0):
    adjoint = A.mT.conj()
    g = doubling(adjoint, dx[..., ::-1, :])[..., ::-1, :]
    before = one_earlier(started(doubling)(A, b, x0), x0)
    dA = g.mT @ before.conj()
    dx0 = applied(adjoint, g[..., :1, :])[..., 0, :]
    return unbroadcast_each((dA, g, dx0), (A, b, x0))


SCANS = {"by_matmul": by_matmul, "tree": tree, "blocks_of_16": in_blocks(16)}
REST, FROM = DENSE_SCAN, DENSE_SCAN_FROM
IMPLEMENTATIONS = [
    Honest(REST.name, "doubling", doubling, doubling_vjp),
    *(Honest(REST.name, name, scan) for name, scan in SCANS.items()),
    Honest(FROM.name, "doubling", started(doubling), _doubling_back),
    *(Honest(FROM.name, name, started(scan)) for name, scan in SCANS.items()),
]
