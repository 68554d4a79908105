"""Liquid S4: a bank of diagonal systems and products of neighbouring inputs [hasani2022liquids4].

    w = −e^{log_rate} + i frequency,   dt = e^{log_dt}
    a = (1 + ½dt w)/(1 − ½dt w),   B̄ = dt B/(1 − ½dt w)
    K_k = 2 Re Σ_n C_n B̄_n a_n^k,   K²_k = 2 Re Σ_n C_n B̄_n² a_n^k  (`liquid_kernel`)
    y = GLU(GELU(K * u + K² * v + D u) W + b),   v_k = u_k u_{k−1}

These are the terms of degree 1 and 2 of x_k = (a + B̄ u_k) x_{k−1} + B̄ u_k, of degree 2 only those
of neighbours. A step is x_k = a x_{k−1} + B̄ u_k + B̄² v_k: both terms have one state.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import (
    complex_entries,
    complex_states,
    layer_frequencies,
    layer_states,
    log_rates,
    log_steps,
    shifts,
    skips,
)
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank
from refssm.layers._parts.bank import turned


@dataclass(frozen=True)
class LiquidS4(Parameters):
    """Parameters of `liquid_s4`."""

    log_dt: np.ndarray = parameter(
        "h", "log of a step from 1e-3 to 1e-1, uniform", "system", domain=log_steps
    )
    log_rate: np.ndarray = parameter("h n", "log(−Re w) of the poles", "system", domain=log_rates)
    frequency: np.ndarray = parameter(
        "h n", "Im w of the poles", "system", domain=layer_frequencies
    )
    B: np.ndarray = parameter("h n", "1", "system", domain=complex_entries)
    C: np.ndarray = parameter("h n", "complex normal, E|C|² = 1", domain=complex_entries)
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h", domain=shifts)

    def resampled(self, factor):
        """ValueError: for smaller steps the products of neighbours vanish beside the inputs."""
        raise ValueError("LiquidS4 multiplies neighbouring samples, so it knows no sampling rate")


def init(
    rng, *, h, n=32, poles="lin", steps="vector", dt_min=initial.DT_MIN, dt_max=initial.DT_MAX
) -> LiquidS4:
    """New parameters in double precision; the options are those of `s4d`."""
    w = np.broadcast_to(initial.modes(rng, poles, n=n)[0], (h, n))
    log_dt = initial.log_steps(rng, h, steps=steps, dt_min=dt_min, dt_max=dt_max)
    C, D = initial.complex_normal(rng, (h, n)), rng.standard_normal(h)
    log_rate, frequency = np.log(-np.real(w)), np.imag(w) + np.zeros((h, n))
    B, maps = np.ones((h, n), complex), initial.linear(rng, h, 2 * h)
    return LiquidS4(log_dt, log_rate, frequency, B, C, D, *maps)


@dataclass(frozen=True)
class LiquidFilters(bank.Filters):
    """The kernels of a bank, and those (h, l) of the products."""

    products: np.ndarray


def _discrete(p):
    """w, B and dt as `discretize_diagonal_bilinear` takes them."""
    w, dt = bank.poles(p)
    return w, p.B[..., None], dt[:, None] + 0 * w.real


def prepared(ops, p, l):
    """Both kernels for l steps, and the function from their gradient to that of the parameters."""
    w, B, dt = _discrete(p)
    a, B_bar = ops.discretize_diagonal_bilinear(w, B, dt)
    given = a, B_bar[..., 0], p.C

    def back(dq):
        first, second = (
            ops.liquid_kernel_vjp((2 * dK).astype(w.dtype), *given, l=l, degree=degree)
            for degree, dK in ((1, dq.K), (2, dq.products))
        )
        da, dB_bar, dC = (x + y for x, y in zip(first, second, strict=True))
        dw, dB, ddt = ops.discretize_diagonal_bilinear_vjp(da, dB_bar[..., None], w, B, dt)
        dlog_dt = ddt.sum(-1) * np.exp(p.log_dt)
        system = dlog_dt, dw.real * w.real, dw.imag, dB[..., 0]
        return LiquidS4(*system, dC, dq.D, dq.W, dq.b)

    kernels = [2 * ops.liquid_kernel(*given, l=l, degree=degree).real for degree in (1, 2)]
    return LiquidFilters(kernels[0], p.D, p.W, p.b, kernels[1]), back


def late(x):
    """x_{k−1} for every k, and 0 at the start; time is last."""
    return np.concatenate([np.zeros_like(x[..., :1]), x[..., :-1]], axis=-1)


def _early(x):
    """x_{k+1} for every k, and 0 at the end."""
    return np.concatenate([x[..., 1:], np.zeros_like(x[..., :1])], axis=-1)


def run(ops, q, u):
    """The output, and the function from its cotangent to the gradients of `q` and of u."""
    ut = turned(u)
    v = ut * late(ut)
    y = ops.causal_convolution(ut, q.K) + ops.causal_convolution(v, q.products)
    y = turned(y + q.D[:, None] * ut)

    def back(dout):
        dy, dW, db = bank.mixed_vjp(ops, dout, q, y)
        g = turned(dy)
        du, dK = ops.causal_convolution_vjp(g, ut, q.K)
        dv, dproducts = ops.causal_convolution_vjp(g, v, q.products)
        du = du + dv * late(ut) + _early(dv * ut) + q.D[:, None] * g
        dD = (g * ut).sum(-1)
        dD = dD.reshape(-1, dD.shape[-1]).sum(0)
        return LiquidFilters(dK, dD, dW, db, dproducts), turned(du)

    return bank.mixed(ops, q, y), back


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    a, B = ops.discretize_diagonal_bilinear(*_discrete(p))
    ut = turned(u)
    given = np.concatenate([state[1][..., None], ut], axis=-1)  # the input before, first
    both = np.stack([ut, ut * given[..., :-1]], axis=-1)
    inputs = np.concatenate([B, B * B], axis=-1)
    skip = np.stack([p.D, np.zeros_like(p.D)], axis=-1)[:, None, :]
    y, x = ops.diagonal_ssm_real_stateful(a, inputs, p.C[:, None, :], skip, both, state[0])
    return bank.mixed(ops, p, turned(y[..., 0])), (x, given[..., -1])


LIQUID_S4_LAYER = Layer(
    name="liquid_s4", kind=LiquidS4, init=init, prepared=prepared, run=run, stateful=stateful,
    source="hasani2022liquids4",
    states={"x": ("h n", complex_states), "s": ("h", layer_states)},
    traits=frozenset({"time-invariant", "transform"}),
    tags=("Liquid-S4 layer", "liquid state space model"),
)  # fmt: skip
