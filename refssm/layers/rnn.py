"""A recurrent network with tanh: the baseline without a linear system.

x_k = tanh(u_k W_u + x_{k−1} W_x + b_x),   y_k = x_k W + b
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import layer_states, recurrent_weights, shifts
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts.mixing import linear, linear_vjp


@dataclass(frozen=True)
class RNN(Parameters):
    """Parameters of `rnn`."""

    W_u: np.ndarray = parameter("h n", "uniform between ±1/√n")
    W_x: np.ndarray = parameter(
        "n n", "uniform between ±1/√n, or Āᵀ of HiPPO", domain=recurrent_weights
    )
    b_x: np.ndarray = parameter("n", "uniform between ±1/√n", domain=shifts)
    W: np.ndarray = parameter("n h", "uniform between ±1/√n")
    b: np.ndarray = parameter("h", "uniform between ±1/√n", domain=shifts)


def init(rng, *, h, n=64, recurrence="uniform") -> RNN:
    """New parameters in double precision; `recurrence` is uniform or hippo, where W_x starts as the
    discretized A of HiPPO-LegS."""
    W_u = rng.uniform(-1, 1, (h, n)) / np.sqrt(n)
    W_x, b_x = initial.linear(rng, n, n)
    W_x = initial.recurrence(recurrence, uniform=W_x)
    return RNN(W_u, W_x, b_x, *initial.linear(rng, n, h))


def _states(p, u, before):
    """x_k for every k, with `before` first: (…, l + 1, n)."""
    given = linear(u, p.W_u, p.b_x)
    shape = (*given.shape[:-2], given.shape[-2] + 1, given.shape[-1])
    x = np.empty_like(given, shape=shape)
    x[..., 0, :] = before
    for k in range(given.shape[-2]):
        x[..., k + 1, :] = np.tanh(given[..., k, :] + x[..., k, :] @ p.W_x)
    return x


def forward(ops, p, u):
    """The output for a signal (…, l, h) from rest; no operator is used."""
    return stateful(ops, p, u, RNN_LAYER.rest(p, u.shape[:-2]))[0]


def vjp(ops, dy, p, u):
    """Gradients of the parameters, and of u: back through time."""
    x = _states(p, u, 0)
    dx, dW, db = linear_vjp(dy, x[..., 1:, :], p.W)
    carried = np.zeros_like(dx[..., 0, :])
    for k in range(u.shape[-2] - 1, -1, -1):
        t = x[..., k + 1, :]
        dx[..., k, :] = (dx[..., k, :] + carried) * ((1 - t) * (1 + t))
        carried = dx[..., k, :] @ p.W_x.T
    du, dW_u, db_x = linear_vjp(dx, u, p.W_u)
    _, dW_x, _ = linear_vjp(dx, x[..., :-1, :], p.W_x)
    return RNN(dW_u, dW_x, db_x, dW, db), du


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    x = _states(p, u, state[0])
    return linear(x[..., 1:, :], p.W, p.b), (x[..., -1, :],)


RNN_LAYER = Layer(
    name="rnn", kind=RNN, init=init, forward=forward, vjp=vjp, stateful=stateful,
    source="elman1990", states={"x": ("n", layer_states)},
    tags=("Elman", "vanilla RNN", "tanh RNN"),
)  # fmt: skip
