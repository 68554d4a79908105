"""Mamba-2: a gated state-space recurrence with one decay for each head [dao2024mamba2, §7].

    z = u W_z,   x, B, C = silu(k * (u W) + bias), each with its own W, k and bias,   dt = u W_dt
    S_t = e^{Δ_t A} S_{t−1} + Δ_t x_t B_tᵀ,   Δ = softplus(dt + dt_bias),   A = −e^{log_rate}
    y_t = (S_t C_t + D x_t) silu(z_t),   out = (scale · y/√(mean y² + ε)) W_out

The mean is over the p numbers of all g heads; heads share B and C. Recurrence, skip and gate are
`mamba2_scan`.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import (
    biases,
    layer_scales,
    layer_states,
    log_rates,
    shifts,
    skips,
    weights_of_taps,
)
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts.filters import convolved, convolved_stateful
from refssm.layers._parts.heads import beside, drawn, headed, headed_vjp, split
from refssm.layers._parts.mixing import flat, plus


@dataclass(frozen=True)
class Mamba2(Parameters):
    """Parameters of `mamba2`: `g` heads of `p` numbers and `n` states for each, `t` taps."""

    W_z: np.ndarray = parameter("g h p", "uniform between ±1/√h")
    W_x: np.ndarray = parameter("g h p", "uniform between ±1/√h")
    W_B: np.ndarray = parameter("h n", "uniform between ±1/√h")
    W_C: np.ndarray = parameter("h n", "uniform between ±1/√h")
    W_dt: np.ndarray = parameter("h g", "uniform between ±1/√h")
    k_x: np.ndarray = parameter("g p t", "uniform between ±1/√t", domain=weights_of_taps)
    k_B: np.ndarray = parameter("n t", "uniform between ±1/√t", domain=weights_of_taps)
    k_C: np.ndarray = parameter("n t", "uniform between ±1/√t", domain=weights_of_taps)
    bias_x: np.ndarray = parameter("g p", "uniform between ±1/√t", domain=shifts)
    bias_B: np.ndarray = parameter("n", "uniform between ±1/√t", domain=shifts)
    bias_C: np.ndarray = parameter("n", "uniform between ±1/√t", domain=shifts)
    dt_bias: np.ndarray = parameter(
        "g", "inverse softplus of a step, log-uniform", "plain", domain=biases
    )
    log_rate: np.ndarray = parameter(
        "g", "log of a rate from 1 to 16, uniform", "system", domain=log_rates
    )
    D: np.ndarray = parameter("g", "1", "plain", domain=skips)
    scale: np.ndarray = parameter("g p", "1", "plain", domain=layer_scales)
    W_out: np.ndarray = parameter("g p h", "uniform between ±1/√(g p)")


def init(rng, *, h, n=16, p=16, t=4, expand=2) -> Mamba2:
    """New parameters in double precision; g = expand · h/p, rounded up."""
    g = -(-expand * h // p)
    W_z, W_x = drawn(rng, g, h, p), drawn(rng, g, h, p)
    W_B, W_C = initial.linear(rng, h, n)[0], initial.linear(rng, h, n)[0]
    (k_x, bias_x), (k_B, bias_B), (k_C, bias_C) = (
        initial.linear(rng, t, size) for size in (g * p, n, n)
    )
    log_rate = np.log(rng.uniform(initial.HEAD_MIN, initial.HEAD_MAX, g))
    return Mamba2(
        W_z, W_x, W_B, W_C, initial.linear(rng, h, g)[0],
        k_x.T.reshape(g, p, t).copy(), k_B.T.copy(), k_C.T.copy(), bias_x.reshape(g, p), bias_B,
        bias_C, initial.step_biases(rng, g), log_rate, np.ones(g), np.ones((g, p)),
        initial.linear(rng, g * p, h)[0].reshape(g, p, h),
    )  # fmt: skip


def _streams(p):
    """Maps, taps and biases of x, B and C; B and C as of one head for all."""
    return (
        (p.W_x, p.k_x, p.bias_x),
        (p.W_B[None], p.k_B[None], p.bias_B[None]),
        (p.W_C[None], p.k_C[None], p.bias_C[None]),
    )


def _steps(p, u):
    """dt (…, g, l)."""
    return np.swapaxes((flat(u) @ p.W_dt).reshape(*u.shape[:-1], p.W_dt.shape[-1]), -1, -2)


def _last_map(p):
    """Scale and W_out of all heads' numbers side by side."""
    g, inner, h = p.W_out.shape
    return p.scale.reshape(g * inner), p.W_out.reshape(g * inner, h)


def _out(ops, p, y):
    """The norm over all heads and the last map."""
    scale, W = _last_map(p)
    rows = ops.rms_norm(beside(y), scale)
    return (flat(rows) @ W).reshape(*rows.shape[:-1], W.shape[-1])


def run(ops, p, u):
    """The output, and the function from its cotangent to the gradients of `p` and of u."""
    (x, B, C), backs = zip(*(convolved(ops, u, *stream) for stream in _streams(p)), strict=True)
    A = -np.exp(p.log_rate)
    arguments = x, _steps(p, u), A, B, C, p.D, headed(u, p.W_z), p.dt_bias
    y = ops.mamba2_scan(*arguments)

    def back(dout):
        scale, W = _last_map(p)
        rows = beside(y)
        normal = ops.rms_norm(rows, scale)
        drows, dscale = ops.rms_norm_vjp((flat(dout) @ W.T).reshape(rows.shape), rows, scale)
        dy = split(drows, *p.scale.shape)
        dx, ddt, dA, dB, dC, dD, dz, dbias = ops.mamba2_scan_vjp(dy, *arguments)
        du, dW_z = headed_vjp(dz, u, p.W_z)
        found = []
        for g, stream_back in zip((dx, dB, dC), backs, strict=True):
            through, *own = stream_back(g)
            du = plus(du, through)
            found.append(own)
        dx, dB, dC = found
        ddt = np.swapaxes(ddt, -1, -2)
        du = plus(du, (flat(ddt) @ p.W_dt.T).reshape(u.shape))
        return Mamba2(
            dW_z, dx[0], dB[0][0], dC[0][0], flat(u).T @ flat(ddt), dx[1], dB[1][0], dC[1][0],
            dx[2], dB[2][0], dC[2][0], dbias, dA * A, dD, dscale.reshape(p.scale.shape),
            (flat(normal).T @ flat(dout)).reshape(p.W_out.shape),
        ), du  # fmt: skip

    return _out(ops, p, y), back


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    before = state[0], state[1][..., None, :, :], state[2][..., None, :, :]
    streams = zip(_streams(p), before, strict=True)
    filtered = [convolved_stateful(ops, u, *stream, s) for stream, s in streams]
    (x, s_x), (B, s_B), (C, s_C) = filtered
    arguments = x, _steps(p, u), -np.exp(p.log_rate), B, C, p.D, headed(u, p.W_z), p.dt_bias
    y, S = ops.mamba2_scan_stateful(*arguments, state[3])
    return _out(ops, p, y), (s_x, s_B[..., 0, :, :], s_C[..., 0, :, :], S)


MAMBA2_LAYER = Layer(
    name="mamba2", kind=Mamba2, init=init, run=run, stateful=stateful,
    source="dao2024mamba2",  # states: the last t inputs of the filters, and that of the scan
    states={"s_x": ("g p t", layer_states), "s_B": ("n t", layer_states),
            "s_C": ("n t", layer_states), "S": ("g p n", layer_states)},
    tags=("Mamba2Simple", "Mamba-2 block", "Mamba2Mixer block"),
)  # fmt: skip
