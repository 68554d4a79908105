"""Heads: a matrix for each of g heads, from signals (…, l, h) to (…, g, l, n) and back.

One product of matrices for all heads is faster than one for each.
"""

import numpy as np

from refssm import initial
from refssm.layers._parts.mixing import flat


def headed(u, W):
    """u W_g for each head, with W (g, h, n)."""
    g, _, n = W.shape
    rows = flat(u) @ _beside(W)
    return np.swapaxes(rows.reshape(*u.shape[:-1], g, n), -2, -3)


def headed_vjp(dy, u, W):
    """Gradients of u and W."""
    g, h, n = W.shape
    rows = flat(beside(dy))
    dW = np.swapaxes((flat(u).T @ rows).reshape(h, g, n), 0, 1)
    return (rows @ _beside(W).T).reshape(u.shape), dW


def merged(y, W):
    """Σ_g y_g W_g, with W (g, n, h)."""
    rows = beside(y)
    return (flat(rows) @ _stacked(W)).reshape(*rows.shape[:-1], W.shape[-1])


def merged_vjp(dout, y, W):
    """Gradients of y and W."""
    g, n, _ = W.shape
    dW = (flat(beside(y)).T @ flat(dout)).reshape(W.shape)
    dy = (flat(dout) @ _stacked(W).T).reshape(*dout.shape[:-1], g, n)
    return np.swapaxes(dy, -2, -3), dW


def beside(y):
    """(…, g, l, n) with the heads side by side: (…, l, g n)."""
    *batch, g, l, n = y.shape
    return np.swapaxes(y, -2, -3).reshape(*batch, l, g * n)


def split(rows, g, n):
    """Back from `beside`, with g heads of n numbers."""
    return np.swapaxes(rows.reshape(*rows.shape[:-1], g, n), -2, -3)


def _beside(W):
    """The matrices of all heads side by side: (h, g n)."""
    g, h, n = W.shape
    return np.swapaxes(W, 0, 1).reshape(h, g * n)


def _stacked(W):
    """The matrices of all heads one below the other: (g n, h)."""
    g, n, h = W.shape
    return W.reshape(g * n, h)


def drawn(rng, g, h, n):
    """W (g, h, n), uniform between ±1/√h: as one linear map to g n numbers."""
    W, _ = initial.linear(rng, h, g * n)
    return np.ascontiguousarray(np.swapaxes(W.reshape(h, g, n), 0, 1))


def drawn_back(rng, g, n, h):
    """W (g, n, h), uniform between ±1/√(g n): as one linear map of g n numbers."""
    return initial.linear(rng, g * n, h)[0].reshape(g, n, h)
