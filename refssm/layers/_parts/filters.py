"""A map of signals to heads, a short convolution with a bias, and SiLU; with their gradients."""

import numpy as np

from refssm.layers._parts.heads import headed, headed_vjp


def convolved(ops, u, W, k, bias):
    """silu(k * (u W_g) + bias) with W (g, h, n) and taps (g, n, t), as (…, g, l, n); and the
    function from its cotangent to the gradients of u, W, k and bias."""
    raw = _over_time(headed(u, W))

    def back(dy):
        draw, dk, dbias = ops.causal_conv1d_vjp(_over_time(dy), raw, k, bias)
        return *headed_vjp(_over_time(draw), u, W), dk, dbias

    return _over_time(ops.causal_conv1d(raw, k, bias)), back


def convolved_stateful(ops, u, W, k, bias, before):
    """The same from the last t inputs (…, g, n, t), the newest last; also the next ones."""
    y, newest = ops.causal_conv1d_stateful(_over_time(headed(u, W)), k, bias, before)
    return _over_time(y), newest


def _over_time(x):
    """Time last, and back."""
    return np.swapaxes(x, -1, -2)
