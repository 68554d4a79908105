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
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank


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


def init(
    rng, *, h, n=32, poles="lin", steps="vector", dt_min=initial.DT_MIN, dt_max=initial.DT_MAX
) -> S4D:
    """New parameters in double precision; `poles` is lin, inv, quad, real, legs, which is hippo-n,
    antisymmetric or random, equal in all channels; `steps` is vector, or scalar: one step for all
    channels."""
    w = np.broadcast_to(initial.modes(rng, poles, n=n)[0], (h, n))
    W, b = initial.linear(rng, h, 2 * h)
    log_dt = initial.log_steps(rng, h, steps=steps, dt_min=dt_min, dt_max=dt_max)
    C, D = initial.complex_normal(rng, (h, n)), rng.standard_normal(h)
    return S4D(log_dt, np.log(-np.real(w)), np.imag(w) + np.zeros((h, n)), C, D, W, b)


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    return bank.prepared(ops, "zoh", p, l)


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    return bank.stateful(ops, "zoh", p, u, state)


S4D_LAYER = Layer(
    name="s4d", kind=S4D, init=init, prepared=prepared, run=bank.run, stateful=stateful,
    source="gu2022s4d", states={"x": ("h n", complex_states)},
    traits=frozenset({"time-invariant", "transform"}),
    tags=("S4D layer", "S4D module"),
)  # fmt: skip
