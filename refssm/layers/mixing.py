"""Linear maps, dropout and pooling over signals (…, l, h), with their gradients."""

import numpy as np


def linear(x, W, b):
    """x W + b, with W (m, p)."""
    return x @ W + b


def linear_vjp(dy, x, W):
    """dx = dy Wᵀ, dW = Σ x ⊗ dy, db = Σ dy; the sums go over all leading axes."""
    flat_x, flat_dy = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return dy @ W.T, flat_x.T @ flat_dy, summed(dy)


def summed(dy):
    """The sum over all leading axes, pairwise: NumPy adds so only where memory is contiguous."""
    return dy.reshape(-1, dy.shape[-1]).T.copy().sum(-1)


def mean_pool(x):
    """The mean over time: (…, l, h) to (…, h)."""
    return x.mean(-2)


def mean_pool_vjp(dy, x):
    """dy/l at every time."""
    return np.broadcast_to(dy[..., None, :] / x.dtype.type(x.shape[-2]), x.shape)


def dropout_mask(rng, shape, rate, dtype):
    """0 with probability `rate`, else 1/(1 − rate): the product with it keeps the mean."""
    kept = rng.random(shape, np.float32) >= rate
    return kept.astype(dtype) / np.asarray(1 - rate, dtype)
