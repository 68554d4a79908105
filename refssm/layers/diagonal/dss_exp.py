"""DSS-exp: a bank of h diagonal systems with the same poles and a step each [gupta2022dss].

    w = −e^{log_rate} + i frequency,   dt = e^{log_dt}
    K_k = Re Σ_n C_n (e^{dt w_n} − 1)/w_n e^{dt w_n k}
    y = GLU(GELU(K * u + D u) W + b)

All channels share the n poles. The kernel is the real part of a complex one, without the factor 2
of conjugate pairs. It is zero-order hold with B = 1; stepping runs the system as a recurrence.
"""

from dataclasses import dataclass, replace

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
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank


@dataclass(frozen=True)
class DSSExp(Parameters):
    """Parameters of `dss_exp`."""

    log_dt: np.ndarray = parameter(
        "h", "log of a step from 1e-3 to 1e-1, uniform", "system", domain=log_steps
    )
    log_rate: np.ndarray = parameter("n", "log(−Re w) of the poles", "system", domain=log_rates)
    frequency: np.ndarray = parameter("n", "Im w of the poles", "system", domain=layer_frequencies)
    C: np.ndarray = parameter("h n", "both parts normal", domain=complex_entries)
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h", domain=shifts)


def init(
    rng, *, h, n=64, poles="hippo-n", steps="vector", dt_min=initial.DT_MIN, dt_max=initial.DT_MAX
) -> DSSExp:
    """New parameters in double precision; the options are those of `s4d`. The paper's Skew-HiPPO
    is `hippo-n`."""
    w, log_dt, C, D, W, b = started(rng, poles, h, n, steps=steps, dt_min=dt_min, dt_max=dt_max)
    return DSSExp(log_dt, np.log(-np.real(w)), np.imag(w), C, D, W, b)


def started(rng, poles, h, n, **steps):
    """The poles (n), and log_dt, C, D, W and b."""
    w = initial.modes(rng, poles, n=n)[0]
    W, b = initial.linear(rng, h, 2 * h)
    log_dt, (x, y) = initial.log_steps(rng, h, **steps), rng.standard_normal((2, h, n))
    return w, log_dt, x + 1j * y, rng.standard_normal(h), W, b


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    w, dt = bank.poles(p)

    def back(dq):
        dw, dC, ddt = ops.dss_exp_kernel_vjp(dq.K.astype(w.dtype), w, p.C, dt, l=l)
        return DSSExp(ddt * dt, dw.real * w.real, dw.imag, dC, dq.D, dq.W, dq.b)

    return bank.Filters(ops.dss_exp_kernel(w, p.C, dt, l=l).real, p.D, p.W, p.b), back


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state: those of `s4d` with C/2."""
    rates, frequencies = (x + np.zeros_like(p.C.real) for x in (p.log_rate, p.frequency))
    same = replace(p, log_rate=rates, frequency=frequencies, C=p.C / 2)
    return bank.stateful(ops, "zoh", same, u, state)


DSS_EXP_LAYER = Layer(
    name="dss_exp", kind=DSSExp, init=init, prepared=prepared, run=bank.run, stateful=stateful,
    source="gupta2022dss", states={"x": ("h n", complex_states)},
    traits=frozenset({"time-invariant", "transform"}),
    tags=("DSS_exp layer", "DSS version exp"),
)  # fmt: skip
