"""What layers of h kernels share: y = K * u + D u in every channel, then GLU(GELU(y) W + b).

A bank of h diagonal systems has poles w = −e^{log_rate} + i frequency, steps dt and B = 1. `rule`
says how they become discrete: it is the end of the names of two operators, the kernel of the system
and its discretization.
"""

from dataclasses import dataclass

import numpy as np

from refssm.layers._frame import Parameters
from refssm.layers._parts.mixing import linear, linear_vjp, summed


def turned(x):
    """(…, l, h) with time last, and back."""
    return np.swapaxes(x, -1, -2)


def filtered(ops, K, D, u):
    """K * u + D u for a signal (…, l, h)."""
    ut = turned(u)
    return turned(ops.causal_convolution(ut, K) + D[:, None] * ut)


def filtered_vjp(ops, dy, K, D, u):
    """Gradients of K, D and u."""
    g, ut = turned(dy), turned(u)
    du, dK = ops.causal_convolution_vjp(g, ut, K)
    return dK, summed(dy * u), turned(du + D[:, None] * g)


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


def poles(p):
    """w and dt."""
    return -np.exp(p.log_rate) + 1j * p.frequency, np.exp(p.log_dt)


def kernel(ops, rule, p, l):
    """The kernels K_k = 2 Re Σ_n C_n Ā_n^k B̄_n for l steps, and the function from their gradient to
    those of log_dt, log_rate, frequency and C."""
    (w, dt), name = poles(p), f"diagonal_kernel_{rule}"
    one = np.ones_like(w)

    def back(dK):
        dk = (2 * dK).astype(w.dtype)
        dw, _, dC, ddt = getattr(ops, f"{name}_vjp")(dk, w, one, p.C, dt, l=l)
        return ddt * dt, dw.real * w.real, dw.imag, dC

    return 2 * getattr(ops, name)(w, one, p.C, dt, l=l).real, back


def prepared(ops, rule, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    K, kernel_back = kernel(ops, rule, p, l)

    def back(dq):
        dlog_dt, dlog_rate, dfrequency, dC = kernel_back(dq.K)
        return type(p)(dlog_dt, dlog_rate, dfrequency, dC, dq.D, dq.W, dq.b)

    return Filters(K, p.D, p.W, p.b), back


def stateful(ops, rule, p, u, state):
    """The output for a piece from a state, and the next state."""
    w, dt = poles(p)
    discretize = getattr(ops, f"discretize_diagonal_{rule}")
    a, B = discretize(w, np.ones_like(w)[..., None], dt[:, None] + 0 * w.real)
    ut = turned(u)[..., None]
    y, x = ops.diagonal_ssm_real_stateful(a, B, p.C[:, None, :], p.D[:, None, None], ut, state[0])
    return mixed(ops, p, turned(y[..., 0])), (x,)
