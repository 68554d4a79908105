"""HOPE: a bank of h systems given by Markov parameters, and a step that warps them [yu2024hope].

    K_k = Σ_j h_j s_{j+1,k}  (`hope_kernel`),   dt = e^{log_dt}
    y = GLU(GELU(K ∗ u + D u) W + b)

The parameters are real, so the kernel is real. Stepping runs the cascade of all-pass filters.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.layers._layer import Layer, Parameters, parameter
from refssm.layers.activations import gelu, gelu_vjp, glu, glu_vjp
from refssm.layers.mixing import linear, linear_vjp


@dataclass(frozen=True)
class HOPE(Parameters):
    """Parameters of `hope`."""

    log_dt: np.ndarray = parameter("h", "log of a step from 1e-3 to 1e-1, uniform", "system")
    markov: np.ndarray = parameter("h n", "normal, divided by √n", "system")
    D: np.ndarray = parameter("h", "normal")
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h")


def init(rng, *, h, n=64) -> HOPE:
    """New parameters in double precision."""
    log_dt = np.log(initial.steps(rng, h))
    markov, D = initial.markov(rng, (h, n)), rng.standard_normal(h)
    return HOPE(log_dt, markov, D, *initial.linear(rng, h, 2 * h))


def _convolved(ops, p, u):
    """K and K ∗ u + D u, with time last: (…, h, l)."""
    K = ops.hope_kernel(p.markov, np.exp(p.log_dt), l=u.shape[-1])
    return K, ops.causal_convolution(u, K) + p.D[:, None] * u


def forward(ops, p, u):
    """The output for a signal (…, l, h) from rest."""
    _, y = _convolved(ops, p, np.swapaxes(u, -1, -2))
    return _mixed(p, np.swapaxes(y, -1, -2))


def _mixed(p, y):
    return glu(linear(gelu(y), p.W, p.b))


def vjp(ops, dy, p, u):
    """Gradients of the parameters, and of u."""
    ut = np.swapaxes(u, -1, -2)
    K, y = _convolved(ops, p, ut)
    y = np.swapaxes(y, -1, -2)
    hidden = gelu(y)
    dhidden, dW, db = linear_vjp(glu_vjp(dy, linear(hidden, p.W, p.b)), hidden, p.W)
    g = np.swapaxes(gelu_vjp(dhidden, y), -1, -2)
    du, dK = ops.causal_convolution_vjp(g, ut, K)
    dD = (g * ut).sum(-1)
    dt = np.exp(p.log_dt)
    dmarkov, ddt = ops.hope_kernel_vjp(dK, p.markov, dt, l=u.shape[-2])
    dD = dD.reshape(-1, dD.shape[-1]).sum(0)
    return HOPE(ddt * dt, dmarkov, dD, dW, db), np.swapaxes(du + p.D[:, None] * g, -1, -2)


def rest(p, batch=()):
    """The state before the first step."""
    return (np.zeros((*batch, *p.markov.shape), p.markov.dtype),)


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    ut = np.swapaxes(u, -1, -2)
    y, x = ops.hope_stream_stateful(p.markov, np.exp(p.log_dt), ut, state[0])
    return _mixed(p, np.swapaxes(y + p.D[:, None] * ut, -1, -2)), (x,)


HOPE_LAYER = Layer(
    name="hope", kind=HOPE, init=init, forward=forward, vjp=vjp, rest=rest, stateful=stateful,
    sizes={"n": 64}, source="yu2024hope",
)  # fmt: skip
