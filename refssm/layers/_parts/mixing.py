"""Linear maps, tables, dropout and reading of signals (…, l, h), with their gradients."""

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np


def flat(x):
    """All leading axes as one: one product of matrices is faster than many small ones."""
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


def plus(y, x):
    """y + x, in the memory of y if the sum has its type. Nobody else may hold y."""
    if np.result_type(y.dtype, x.dtype) != y.dtype:
        return y + x
    y += x
    return y


def mapped(x, W):
    """x W, with W (m, p)."""
    return (flat(x) @ W).reshape(*x.shape[:-1], W.shape[-1])


def mapped_vjp(dy, x, W):
    """Gradients of x and W."""
    return (flat(dy) @ W.T).reshape(x.shape), flat(x).T @ flat(dy)


def linear(x, W, b):
    """x W + b, with W (m, p)."""
    y = plus(flat(x) @ W, b)
    return y.reshape(*x.shape[:-1], W.shape[-1])


def linear_vjp(dy, x, W):
    """dx = dy Wᵀ, dW = Σ x ⊗ dy, db = Σ dy; the sums go over all leading axes."""
    return (flat(dy) @ W.T).reshape(x.shape), flat(x).T @ flat(dy), summed(dy)


def summed(dy):
    """The sum over all leading axes, by halves: NumPy adds pairwise only along the last axis."""
    rows = flat(dy)
    while len(rows) > 1:
        half = len(rows) // 2
        added = rows[:half] + rows[half : 2 * half]
        rows = np.concatenate([added, rows[-1:]]) if len(rows) % 2 else added
    return rows.sum(0)


def embedding(symbols, table):
    """x_k = table[u_k], the row (h) of each symbol; symbols (…, l) are integers from 0."""
    return table[symbols]


def embedding_vjp(dx, symbols, table):
    """The gradient of the table: row s is Σ dx_k over all k with u_k = s."""
    dtable = np.zeros_like(table, dtype=dx.dtype)
    np.add.at(dtable, symbols, dx)
    return dtable


def mean_pool(x):
    """The mean over time: (…, l, h) to (…, h)."""
    return x.mean(-2)


def mean_pool_vjp(dy, x):
    """dy/l at every time."""
    return np.broadcast_to(dy[..., None, :] / x.dtype.type(x.shape[-2]), x.shape)


def last_step(x):
    """The signal at the last time: (…, l, h) to (…, h)."""
    return x[..., -1, :]


def last_step_vjp(dy, x):
    """dy at the last time, 0 before."""
    dx = np.zeros_like(x, dtype=dy.dtype)
    dx[..., -1, :] = dy
    return dx


class Reading(NamedTuple):
    """What the decoder gets of the signal (…, l, h) after the last block, and its gradient."""

    of: Callable
    vjp: Callable  # vjp(dy, x)


READINGS = {
    "mean": Reading(mean_pool, mean_pool_vjp),
    "last": Reading(last_step, last_step_vjp),
    "each": Reading(lambda x: x, lambda dy, x: dy),
}


def dropout_mask(rng, shape, rate, dtype):
    """0 with probability `rate`, else 1/(1 − rate): the product with it keeps the mean."""
    kept = rng.random(shape, np.float32) >= rate
    return kept.astype(dtype) / np.dtype(dtype).type(1 - rate)
