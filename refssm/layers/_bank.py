"""What layers of h kernels share: y = K * u + D u in every channel, then GLU(GELU(y) W + b)."""

from dataclasses import dataclass

import numpy as np

from refssm.layers._layer import Parameters
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


@dataclass(frozen=True)
class Filters(Parameters):
    """The kernels (h, l) of a bank, and what follows them."""

    K: np.ndarray
    D: np.ndarray
    W: np.ndarray
    b: np.ndarray


def run(ops, q: Filters, u):
    """The output, and the function from its cotangent to the gradients of `q` and of u."""
    y = filtered(ops, q.K, q.D, u)

    def back(dout):
        dy, dW, db = mixed_vjp(ops, dout, q, y)
        g, ut = turned(dy), turned(u)
        du, dK = ops.causal_convolution_vjp(g, ut, q.K)
        dD = (g * ut).sum(-1)
        du = turned(du + q.D[:, None] * g)
        return Filters(dK, dD.reshape(-1, dD.shape[-1]).sum(0), dW, db), du

    return mixed(ops, q, y), back
