"""What layers of h kernels share: y = K * u + D u in every channel, then GLU(GELU(y) W + b)."""

import numpy as np

from refssm.layers.mixing import linear, linear_vjp


def turned(x):
    """(…, l, h) with time last, and back."""
    return np.swapaxes(x, -1, -2)


def filtered(ops, K, D, u):
    """K * u + D u for a signal (…, l, h)."""
    ut = turned(u)
    return turned(ops.causal_convolution(ut, K) + D[:, None] * ut)


def mixed(ops, p, y):
    """GLU(GELU(y) W + b)."""
    return ops.glu(linear(ops.gelu(y), p.W, p.b))


def mixed_vjp(ops, dy, p, y):
    """Gradients of y, W and b."""
    hidden = ops.gelu(y)
    dhidden, dW, db = linear_vjp(ops.glu_vjp(dy, linear(hidden, p.W, p.b)), hidden, p.W)
    return ops.gelu_vjp(dhidden, y), dW, db


def filtered_both_ways(ops, K, back, D, u):
    """The same with a kernel for the future, from the next input on."""
    ut = turned(u)
    return turned(ops.bidirectional_convolution_shifted(ut, K, back) + D[:, None] * ut)


def vjp(ops, dy, K, p, u):
    """Gradients of K, and of D, W and b, and of u."""
    (dK,), others, du = _vjp(ops, dy, filtered, ops.causal_convolution_vjp, (K,), p, u)
    return dK, others, du


def vjp_both_ways(ops, dy, kernels, p, u):
    """Gradients of both kernels, and of D, W and b, and of u."""
    pulled = ops.bidirectional_convolution_shifted_vjp
    return _vjp(ops, dy, filtered_both_ways, pulled, kernels, p, u)


def _vjp(ops, dy, system, pulled, kernels, p, u):
    """Through the gates, and the VJP `pulled` of the convolution of a `system`."""
    dy, dW, db = mixed_vjp(ops, dy, p, system(ops, *kernels, p.D, u))
    g, ut = turned(dy), turned(u)
    du, *dkernels = pulled(g, ut, *kernels)
    dD = (g * ut).sum(-1)
    du = turned(du + p.D[:, None] * g)
    return dkernels, (dD.reshape(-1, dD.shape[-1]).sum(0), dW, db), du
