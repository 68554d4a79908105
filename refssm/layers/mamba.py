"""Mamba: a gated selective scan with a short convolution [gu2023mamba, §3.4].

    x, z = halves of u W_in,   x ← silu(k * x + k_b)
    dt = (x W_low) W_dt,   B = x W_B,   C = x W_C,   A = −e^{log_rate}
    out = (mamba_scan(x, dt, A, B, C, D, z, dt_bias)) W_out

Inside there are e channels, twice those of u. The scan applies softplus(dt + dt_bias) and the gate.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import biases, layer_states, log_rates, shifts, skips, weights_of_taps
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts.mixing import summed


@dataclass(frozen=True)
class Mamba(Parameters):
    """Parameters of `mamba`; `e` is the inner width, `r` the rank of dt, `t` the taps."""

    W_in: np.ndarray = parameter("h 2e", "uniform between ±1/√h")
    k: np.ndarray = parameter("e t", "uniform between ±1/√t", domain=weights_of_taps)
    k_bias: np.ndarray = parameter("e", "uniform between ±1/√t", domain=shifts)
    W_low: np.ndarray = parameter("e r", "uniform between ±1/√e")
    W_B: np.ndarray = parameter("e n", "uniform between ±1/√e")
    W_C: np.ndarray = parameter("e n", "uniform between ±1/√e")
    W_dt: np.ndarray = parameter("r e", "uniform between ±1/√r")
    dt_bias: np.ndarray = parameter(
        "e", "inverse softplus of a step, log-uniform", "plain", domain=biases
    )
    log_rate: np.ndarray = parameter("e n", "log 1, log 2, …, log n", "system", domain=log_rates)
    D: np.ndarray = parameter("e", "1", "plain", domain=skips)
    W_out: np.ndarray = parameter("e h", "uniform between ±1/√e")


def init(rng, *, h, n=16, t=4, expand=2, dt_min=initial.DT_MIN, dt_max=initial.DT_MAX) -> Mamba:
    """New parameters in double precision; bounds of the first steps as in the published code."""
    e, r = expand * h, -(-h // 16)
    log_rate = np.tile(np.log(-initial.rates(n=n)), (e, 1))
    k, k_bias = initial.linear(rng, t, e)
    W_in, W_x = initial.linear(rng, h, 2 * e)[0], initial.linear(rng, e, r + 2 * n)[0]
    W_low, W_B, W_C = np.split(W_x, [r, r + n], axis=1)
    return Mamba(
        W_in,
        np.ascontiguousarray(k.T),
        k_bias,
        W_low,
        W_B,
        W_C,
        initial.linear(rng, r, e)[0],
        initial.step_biases(rng, e, dt_min=dt_min, dt_max=dt_max),
        log_rate,
        np.ones(e),
        initial.linear(rng, e, h)[0],
    )


def _from_x(p):
    """W_low, W_B and W_C side by side: one product of matrices is faster than three."""
    return np.concatenate([p.W_low, p.W_B, p.W_C], axis=-1)


def _borders(p):
    """Where W_B and W_C begin."""
    r, n = len(p.W_dt), p.log_rate.shape[-1]
    return [r, r + n]


def _scanned(p, x):
    """The arguments of the scan that come from x (…, l, e): dt (…, e, l), A, B, C with an axis for
    the channels."""
    low, B, C = np.split(x @ _from_x(p), _borders(p), axis=-1)
    dt = np.swapaxes(low @ p.W_dt, -1, -2)
    return low, (dt, -np.exp(p.log_rate), B[..., None, :, :], C[..., None, :, :])


def _inside(ops, p, u, before):
    """x before and after the activation, and z, all (…, e, l); the newest inputs of the filter."""
    x, z = np.split(np.swapaxes(u @ p.W_in, -1, -2), 2, axis=-2)
    x, newest = ops.short_convolution_stateful(x, p.k, before)
    x = x + p.k_bias[:, None]
    return x, ops.silu(x), z, newest


def forward(ops, p, u):
    """The output for a signal (…, l, h) from rest."""
    before = MAMBA_LAYER.rest(p, u.shape[:-2])[0].astype(u.dtype)
    _, x, z, _ = _inside(ops, p, u, before)
    _, (dt, A, B, C) = _scanned(p, np.swapaxes(x, -1, -2))
    y = ops.mamba_scan(x, dt, A, B, C, p.D, z, p.dt_bias)
    return np.swapaxes(y, -1, -2) @ p.W_out


def _outer(x, dy):
    """Σ x ⊗ dy over all leading axes."""
    return x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])


def vjp(ops, dy, p, u):
    """Gradients of the parameters, and of u."""
    before = MAMBA_LAYER.rest(p, u.shape[:-2])[0].astype(u.dtype)
    raw, xt, z, _ = _inside(ops, p, u, before)
    x = np.swapaxes(xt, -1, -2)
    low, (dt, A, B, C) = _scanned(p, x)
    arguments = xt, dt, A, B, C, p.D, z, p.dt_bias
    y = np.swapaxes(ops.mamba_scan(*arguments), -1, -2)
    dW_out, dy = _outer(y, dy), np.swapaxes(dy @ p.W_out.T, -1, -2)
    dx, ddt, dA, dB, dC, dD, dz, dbias = ops.mamba_scan_vjp(dy, *arguments)
    ddt = np.swapaxes(ddt, -1, -2)
    mixed = np.concatenate([ddt @ p.W_dt.T, dB[..., 0, :, :], dC[..., 0, :, :]], axis=-1)
    dx = ops.silu_vjp(dx + np.swapaxes(mixed @ _from_x(p).T, -1, -2), raw)
    inner = np.split(np.swapaxes(u @ p.W_in, -1, -2), 2, axis=-2)[0]
    dinner, dk, _ = ops.short_convolution_stateful_vjp(
        dx, np.zeros_like(before), inner, p.k, before
    )
    dsplit = np.swapaxes(np.concatenate([dinner, dz], axis=-2), -1, -2)
    dW_low, dW_B, dW_C = np.split(_outer(x, mixed), _borders(p), axis=-1)
    return Mamba(
        _outer(u, dsplit), dk, summed(np.swapaxes(dx, -1, -2)),
        dW_low, dW_B, dW_C, _outer(low, ddt), dbias, dA * A, dD, dW_out,
    ), dsplit @ p.W_in.T  # fmt: skip


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    _, x, z, newest = _inside(ops, p, u, state[0])
    _, (dt, A, B, C) = _scanned(p, np.swapaxes(x, -1, -2))
    y, last = ops.mamba_scan_stateful(x, dt, A, B, C, p.D, z, p.dt_bias, state[1])
    return np.swapaxes(y, -1, -2) @ p.W_out, (newest, last)


MAMBA_LAYER = Layer(
    name="mamba", kind=Mamba, init=init, forward=forward, vjp=vjp, stateful=stateful,
    source="gu2023mamba",  # states: the last t inputs of the filter, and the state of the scan
    states={"s": ("e t", layer_states), "x": ("e n", layer_states)},
    tags=("mamba_inner_fn", "Mamba block", "MambaMixer"),
)  # fmt: skip
