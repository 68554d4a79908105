"""Norms of signals (…, l, h) over the last axis, or over all others, with their gradients.

y = scale (x − mean)/√(variance + ε) + shift,   ε = 1e-5: the usual number of PyTorch
"""

import numpy as np

EPSILON = 1e-5


def layer_norm(x, scale, shift):
    """scale (x − mean)/√(variance + ε) + shift, over the last axis."""
    return scale * _normal(x) + shift


def layer_norm_vjp(dy, x, scale):
    """Gradients of x, scale and shift."""
    y = _normal(x)
    dx = _turned(dy * scale, y, _rate(x - x.mean(-1, keepdims=True)))
    return dx, _over_batch(dy * y), _over_batch(dy)


def rms_norm(x, scale):
    """scale x/√(mean of x² + ε), over the last axis."""
    return scale * (x * _rate(x))


def rms_norm_vjp(dy, x, scale):
    """Gradients of x and scale."""
    rate = _rate(x)
    y, g = x * rate, dy * scale
    return rate * (g - y * (g * y).mean(-1, keepdims=True)), _over_batch(dy * y)


def batch_norm(x, scale, shift):
    """scale (x − mean)/√(variance + ε) + shift; mean and variance over all axes but the last.

    Returns also mean and variance, for the averages that are used after training.
    """
    axes = tuple(range(x.ndim - 1))
    mean = x.mean(axes)
    variance = ((x - mean) ** 2).mean(axes)
    return batch_norm_fixed(x, scale, shift, mean, variance), mean, variance


def batch_norm_fixed(x, scale, shift, mean, variance):
    """The same with given mean and variance, as after training."""
    return scale * ((x - mean) / np.sqrt(variance + x.dtype.type(EPSILON))) + shift


def batch_norm_vjp(dy, x, scale):
    """Gradients of x, scale and shift."""
    axes = tuple(range(x.ndim - 1))
    centred = x - x.mean(axes)
    rate = 1 / np.sqrt((centred * centred).mean(axes) + x.dtype.type(EPSILON))
    y, g = centred * rate, dy * scale
    dx = rate * (g - g.mean(axes) - y * (g * y).mean(axes))
    return dx, _over_batch(dy * y), _over_batch(dy)


def _rate(x):
    """1/√(mean of x² + ε) over the last axis."""
    return 1 / np.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(EPSILON))


def _normal(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * _rate(centred)


def _turned(g, y, rate):
    """Back through (x − mean) · rate: the parts of g along 1 and along y do not count."""
    return rate * (g - g.mean(-1, keepdims=True) - y * (g * y).mean(-1, keepdims=True))


def _over_batch(x):
    """The sum over all axes but the last."""
    return x.reshape(-1, x.shape[-1]).sum(0)
