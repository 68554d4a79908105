"""A recurrent network with tanh whose memory is a HiPPO projection of its own signal [gu2020hippo].

    x_k = tanh(u_k W_u + x_{k−1} W_x + c_{k−1} W_c + b_x),   f_k = x_k · w_f
    c_k = Ā c_{k−1} + B̄ f_k,   y_k = x_k W + b,   dt = e^{log_dt}

c has the first n Legendre coefficients of the last 1/dt values of f: HiPPO-LegT over a window of 1,
under zero-order hold with step dt. A and B stay as they are; the window is a parameter.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import layer_states, log_steps, recurrent_weights, shifts
from refssm.hippo import hippo_legt
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts.mixing import linear, linear_vjp


@dataclass(frozen=True)
class HippoRNN(Parameters):
    """Parameters of `hippo_rnn`; `d` units, a memory of `n` coefficients."""

    W_u: np.ndarray = parameter("h d", "uniform between ±1/√(h + d + n)")
    W_x: np.ndarray = parameter("d d", "uniform between ±1/√(h + d + n)", domain=recurrent_weights)
    W_c: np.ndarray = parameter("n d", "uniform between ±1/√(h + d + n)")
    b_x: np.ndarray = parameter("d", "uniform between ±1/√(h + d + n)", domain=shifts)
    w_f: np.ndarray = parameter("d", "uniform between ±1/√d", domain=shifts)
    log_dt: np.ndarray = parameter(
        "", "log of a step from 1e-3 to 1e-1, uniform", "system", domain=log_steps
    )
    W: np.ndarray = parameter("d h", "uniform between ±1/√d")
    b: np.ndarray = parameter("h", "uniform between ±1/√d", domain=shifts)

    def resampled(self, factor):
        """ValueError: only the memory has a step in time."""
        raise ValueError("HippoRNN goes from sample to sample, so it knows no sampling rate")


def init(rng, *, h, d=64, n=32, dt_min=initial.DT_MIN, dt_max=initial.DT_MAX) -> HippoRNN:
    """New parameters in double precision; 1/dt is the first window of the memory."""
    given, b_x = initial.linear(rng, h + d + n, d)
    W_u, W_x, W_c = np.split(given, [h, h + d])
    w_f = initial.linear(rng, d, 1)[0][:, 0]
    log_dt = np.log(initial.steps(rng, (), dt_min=dt_min, dt_max=dt_max))
    return HippoRNN(W_u, W_x, W_c, b_x, w_f, np.asarray(log_dt), *initial.linear(rng, d, h))


def _memory(p):
    """A and B of LegT over a window of 1, and dt."""
    A, B = hippo_legt(n=len(p.W_c))
    A, B = (np.asarray(x, p.W_c.dtype, like=p.W_c) for x in (A, B[:, None]))
    return A, B, np.exp(p.log_dt)


def _states(p, u, before, A_bar, B_bar):
    """x_k and c_k for every k, with the states before first: (…, l + 1, d) and (…, l + 1, n)."""
    given = linear(u, p.W_u, p.b_x)
    l = given.shape[-2]
    shapes = ((*given.shape[:-2], l + 1, s.shape[-1]) for s in before)
    x, c = (np.empty_like(given, shape=shape) for shape in shapes)
    x[..., 0, :], c[..., 0, :] = before
    for k in range(l):
        x[..., k + 1, :] = np.tanh(given[..., k, :] + x[..., k, :] @ p.W_x + c[..., k, :] @ p.W_c)
        f = (x[..., k + 1, :] * p.w_f).sum(-1)
        c[..., k + 1, :] = c[..., k, :] @ A_bar.T + f[..., None] * B_bar[:, 0]
    return x, c


def forward(ops, p, u):
    """The output for a signal (…, l, h) from rest."""
    return stateful(ops, p, u, HIPPO_RNN_LAYER.rest(p, u.shape[:-2]))[0]


def vjp(ops, dy, p, u):
    """Gradients of the parameters, and of u: back through time."""
    A_bar, B_bar = ops.discretize_zoh(*_memory(p))
    x, c = _states(p, u, HIPPO_RNN_LAYER.rest(p, u.shape[:-2]), A_bar, B_bar)
    dx, dW, db = linear_vjp(dy, x[..., 1:, :], p.W)
    dc, df = np.zeros_like(c[..., 1:, :]), np.zeros_like(dx[..., 0])
    later_x, later_c = np.zeros_like(dx[..., 0, :]), np.zeros_like(dc[..., 0, :])
    for k in range(u.shape[-2] - 1, -1, -1):  # dx becomes the gradient before tanh
        t = x[..., k + 1, :]
        dc[..., k, :], df[..., k] = later_c, (later_c * B_bar[:, 0]).sum(-1)
        dtanh = dx[..., k, :] + later_x + df[..., k, None] * p.w_f
        dx[..., k, :] = dtanh * ((1 - t) * (1 + t))
        later_x = dx[..., k, :] @ p.W_x.T
        later_c = dx[..., k, :] @ p.W_c.T + later_c @ A_bar
    du, dW_u, db_x = linear_vjp(dx, u, p.W_u)
    _, dW_x, _ = linear_vjp(dx, x[..., :-1, :], p.W_x)
    _, dW_c, _ = linear_vjp(dx, c[..., :-1, :], p.W_c)
    _, dA_bar_t, _ = linear_vjp(dc, c[..., :-1, :], A_bar.T)
    f = (x[..., 1:, :] * p.w_f).sum(-1)
    dB_bar = (f[..., None] * dc).reshape(-1, len(A_bar)).sum(0)[:, None]
    dw_f = (df[..., None] * x[..., 1:, :]).reshape(-1, len(p.w_f)).sum(0)
    A, B, dt = _memory(p)
    _, _, ddt = ops.discretize_zoh_vjp(dA_bar_t.T.copy(), dB_bar, A, B, dt)
    return HippoRNN(dW_u, dW_x, dW_c, db_x, dw_f, ddt * dt, dW, db), du


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    A_bar, B_bar = ops.discretize_zoh(*_memory(p))
    x, c = _states(p, u, state, A_bar, B_bar)
    return linear(x[..., 1:, :], p.W, p.b), (x[..., -1, :], c[..., -1, :])


HIPPO_RNN_LAYER = Layer(
    name="hippo_rnn", kind=HippoRNN, init=init, forward=forward, vjp=vjp, stateful=stateful,
    source="gu2020hippo", states={"x": ("d", layer_states), "c": ("n", layer_states)},
    tags=("HiPPO-RNN", "HiPPO recurrent cell"),
)  # fmt: skip
