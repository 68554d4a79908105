"""The linear recurrent unit: poles on a ring, inputs scaled by γ [orvieto2023lru].

x_k = a x_{k−1} + γ B u_k,   y_k = Re(C x_k) + D u_k,   a = exp(−e^{log_rate} + i e^{log_phase})
out = GLU(GELU(y) W + b),   γ = e^{log_gamma}
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import (
    complex_states,
    complex_weights,
    ring_phases,
    ring_rates,
    ring_scales,
    shifts,
    skips,
)
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank, ssm


@dataclass(frozen=True)
class LRU(Parameters):
    """Parameters of `lru`."""

    log_rate: np.ndarray = parameter(
        "n", "log(−log |a|), |a|² uniform", "system", domain=ring_rates
    )
    log_phase: np.ndarray = parameter("n", "log of a uniform phase", "system", domain=ring_phases)
    log_gamma: np.ndarray = parameter("n", "log √(1 − |a|²)", "system", domain=ring_scales)
    B: np.ndarray = parameter("n h", "complex normal, E|B|² = 1/h", domain=complex_weights)
    C: np.ndarray = parameter("h n", "complex normal, E|C|² = 2/n", domain=complex_weights)
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h", domain=shifts)


def init(rng, *, h, n=64, r_min=0.0, r_max=1.0, max_phase=2 * np.pi) -> LRU:
    """New parameters in double precision; r_max and max_phase are positive, as the parameters are
    logarithms of rates and phases."""
    if not (r_max > 0 and 0 < max_phase <= 2 * np.pi):
        bounds = f"got r_max={r_max}, max_phase={max_phase}"
        raise ValueError(f"lru: wanted 0 < r_max and 0 < max_phase ≤ 2π, {bounds}")
    system = initial.lru(rng, n=n, m=h, p=h, r_min=r_min, r_max=r_max, max_phase=max_phase)
    phase = np.angle(system["a"]) % (2 * np.pi)
    logs = np.log(-np.log(np.abs(system["a"]))), np.log(phase), np.log(system["gamma"])
    W, b = initial.linear(rng, h, 2 * h)
    return LRU(*logs, system["B"], system["C"], rng.standard_normal(h), W, b)


def _system(p):
    """a and γ B."""
    a = np.exp(-np.exp(p.log_rate) + 1j * np.exp(p.log_phase))
    return a, np.exp(p.log_gamma)[:, None] * p.B


def prepared(ops, p, l):
    """The system, and the function from its gradient to that of the parameters."""
    a, scaled = _system(p)

    def back(dq):
        turned = dq.a * a.conj()  # a' = a z', z = log a
        return LRU(
            -np.exp(p.log_rate) * turned.real,
            np.exp(p.log_phase) * turned.imag,
            (dq.B * scaled.conj()).sum(-1).real,
            np.exp(p.log_gamma)[:, None] * dq.B,
            dq.C,
            dq.D,
            dq.W,
            dq.b,
        )

    return ssm.System(a, scaled, p.C, p.D, p.W, p.b), back


def run(ops, q, u):
    """The output, and the function from its cotangent to the gradients of `q` and of u."""
    y, system_back = ssm.linearized(ops, q, u)

    def back(dout):
        dy, dW, db = bank.mixed_vjp(ops, dout, q, y)
        da, dB, dC, dD, du = system_back(dy)
        return ssm.System(da, dB, dC, dD, dW, db), du

    return bank.mixed(ops, q, y), back


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    system = *_system(p), p.C / 2, np.diag(p.D)  # Re(C x) is 2 Re(½ C x)
    y, x = ops.diagonal_ssm_real_stateful(*system, u, state[0])
    return bank.mixed(ops, p, y), (x,)


LRU_LAYER = Layer(
    name="lru", kind=LRU, init=init, prepared=prepared, run=run, stateful=stateful,
    source="orvieto2023lru", states={"x": ("n", complex_states)},
    traits=frozenset({"time-invariant"}),
    tags=("LRU", "linear recurrent unit", "minimal-LRU"),
)  # fmt: skip
