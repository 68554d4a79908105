"""What layers of h kernels share: y = K * u + D u in every channel, then GLU(GELU(y) W + b)."""

from dataclasses import dataclass

import numpy as np

from refssm.layers._frame.layer import Parameters
from refssm.layers._parts.mixing import linear, linear_vjp


def turned(x):
    """(…, l, h) with time last, and back."""
    return np.swapaxes(x, -1, -2)


def filtered(ops, K, D, u):
    """K * u + D u for a signal (…, l, h)."""
    ut = turned(u)
    return turned(ops.causal_convolution(ut, K) + D[:, None] * ut)


def filtered_both_ways(ops, K, back, D, u):
    """The same with a kernel for the future, from the next input on."""
    ut = turned(u)
    return turned(ops.bidirectional_convolution_shifted(ut, K, back) + D[:, None] * ut)


def mixed(ops, p, y):
    """GLU(GELU(y) W + b)."""
    return ops.glu(linear(ops.gelu(y), p.W, p.b))


def mixed_vjp(ops, dy, p, y):
    """Gradients of y, W and b."""
    hidden = ops.gelu(y)
    dhidden, dW, db = linear_vjp(ops.glu_vjp(dy, linear(hidden, p.W, p.b)), hidden, p.W)
    return ops.gelu_vjp(dhidden, y), dW, db


@dataclass(frozen=True)
class Filters(Parameters):
    """The kernels (h, l) of a bank, and what follows them."""

    K: np.ndarray
    D: np.ndarray
    W: np.ndarray
    b: np.ndarray


@dataclass(frozen=True)
class FiltersBothWays(Filters):
    """The same with kernels of the future, which begin with the next input."""

    back: np.ndarray


def run(ops, q: Filters, u):
    """The output, and the function from its cotangent to the gradients of `q` and of u."""
    return _run(ops, q, u, filtered(ops, q.K, q.D, u), ops.causal_convolution_vjp, (q.K,))


def run_both_ways(ops, q: FiltersBothWays, u):
    """The same with past and future."""
    y = filtered_both_ways(ops, q.K, q.back, q.D, u)
    return _run(ops, q, u, y, ops.bidirectional_convolution_shifted_vjp, (q.K, q.back))


def _run(ops, q, u, y, pulled, kernels):
    """From the filtered signal, with the VJP `pulled` of its convolution with the kernels."""

    def back(dout):
        dy, dW, db = mixed_vjp(ops, dout, q, y)
        g, ut = turned(dy), turned(u)
        du, dK, *others = pulled(g, ut, *kernels)
        dD = (g * ut).sum(-1)
        du = turned(du + q.D[:, None] * g)
        return type(q)(dK, dD.reshape(-1, dD.shape[-1]).sum(0), dW, db, *others), du

    return mixed(ops, q, y), back
