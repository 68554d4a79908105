"""S4D: a bank of h diagonal systems, each with one input and one output [gu2022s4d].

    w = −e^{log_rate} + i frequency,   dt = e^{log_dt}
    K_k = 2 Re Σ_n C_n dt φ₁(dt w_n) e^{dt w_n k}
    y = GLU(GELU(K * u + D u) W + b)

It has n modes of each channel, one of each conjugate pair. K is the kernel under zero-order hold;
stepping runs the same system as a recurrence.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import (
    complex_entries,
    complex_states,
    layer_frequencies,
    log_rates,
    log_steps,
    shifts,
    skips,
)
from refssm.layers import _bank as bank
from refssm.layers._layer import Layer, Parameters, parameter


@dataclass(frozen=True)
class S4D(Parameters):
    """Parameters of `s4d`."""

    log_dt: np.ndarray = parameter(
        "h", "log of a step from 1e-3 to 1e-1, uniform", "system", domain=log_steps
    )
    log_rate: np.ndarray = parameter("h n", "log(−Re w) of the poles", "system", domain=log_rates)
    frequency: np.ndarray = parameter(
        "h n", "Im w of the poles", "system", domain=layer_frequencies
    )
    C: np.ndarray = parameter("h n", "complex normal, E|C|² = 1", domain=complex_entries)
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h", domain=shifts)


def init(rng, *, h, n=32, poles="lin") -> S4D:
    """New parameters in double precision; `poles` is lin, inv, quad, real or legs."""
    w = np.broadcast_to(initial.diagonal(poles, n=n)["w"], (h, n))
    W, b = initial.linear(rng, h, 2 * h)
    log_dt = np.log(initial.steps(rng, h))
    C, D = initial.complex_normal(rng, (h, n)), rng.standard_normal(h)
    return S4D(log_dt, np.log(-np.real(w)), np.imag(w) + np.zeros((h, n)), C, D, W, b)


def poles(p):
    """w and dt."""
    return -np.exp(p.log_rate) + 1j * p.frequency, np.exp(p.log_dt)


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    w, dt = poles(p)
    one = np.ones_like(w)

    def back(dq):
        dk = (2 * dq.K).astype(w.dtype)
        dw, _, dC, ddt = ops.diagonal_kernel_zoh_vjp(dk, w, one, p.C, dt, l=l)
        return S4D(ddt * dt, dw.real * w.real, dw.imag, dC, dq.D, dq.W, dq.b)

    K = 2 * ops.diagonal_kernel_zoh(w, one, p.C, dt, l=l).real
    return bank.Filters(K, p.D, p.W, p.b), back


def rest(p, batch=()):
    """The state before the first step."""
    return (np.zeros((*batch, *p.C.shape), p.C.dtype),)


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    w, dt = poles(p)
    a, B = ops.discretize_diagonal_zoh(w, np.ones_like(w)[..., None], dt[:, None] + 0 * w.real)
    ut = bank.turned(u)[..., None]
    y, x = ops.diagonal_ssm_real_stateful(a, B, p.C[:, None, :], p.D[:, None, None], ut, state[0])
    return bank.mixed(ops, p, bank.turned(y[..., 0])), (x,)


S4D_LAYER = Layer(
    name="s4d", kind=S4D, init=init, prepared=prepared, run=bank.run, rest=rest,
    stateful=stateful, sizes={"n": 32}, source="gu2022s4d",
    states={"x": ("h n", complex_states)}, traits=frozenset({"time-invariant", "transform"}),
)  # fmt: skip
