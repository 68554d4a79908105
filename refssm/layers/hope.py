"""HOPE: a bank of h systems given by Markov parameters, and a step that warps them [yu2024hope].

    K_k = Σ_j h_j s_{j+1,k}  (`hope_kernel`),   dt = e^{log_dt}
    y = GLU(GELU(K * u + D u) W + b)

The parameters are real, so the kernel is real. Stepping runs the cascade of all-pass filters.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import layer_states, log_steps, markov_parameters, shifts, skips
from refssm.hope import hope_recency_power
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank


@dataclass(frozen=True)
class HOPE(Parameters):
    """Parameters of `hope`."""

    log_dt: np.ndarray = parameter(
        "h", "log of a step from 1e-3 to 1e-1, uniform", "system", domain=log_steps
    )
    markov: np.ndarray = parameter(
        "h n", "normal, divided by √n", "system", domain=markov_parameters
    )
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h", domain=shifts)


def init(
    rng, *, h, n=64, gamma=0.0, steps="vector", dt_min=initial.DT_MIN, dt_max=initial.DT_MAX
) -> HOPE:
    """New parameters in double precision; `gamma` is the power of the recency bias (j + 1)^γ,
    `steps` vector, or scalar: one step for all channels."""
    log_dt = initial.log_steps(rng, h, steps=steps, dt_min=dt_min, dt_max=dt_max)
    markov = hope_recency_power(initial.markov(rng, (h, n)), gamma)
    D = rng.standard_normal(h)
    return HOPE(log_dt, markov, D, *initial.linear(rng, h, 2 * h))


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    dt = np.exp(p.log_dt)

    def back(dq):
        dmarkov, ddt = ops.hope_kernel_vjp(dq.K, p.markov, dt, l=l)
        return HOPE(ddt * dt, dmarkov, dq.D, dq.W, dq.b)

    return bank.Filters(ops.hope_kernel(p.markov, dt, l=l), p.D, p.W, p.b), back


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    ut = bank.turned(u)
    y, x = ops.hope_stream_stateful(p.markov, np.exp(p.log_dt), ut, state[0])
    return bank.mixed(ops, p, bank.turned(y + p.D[:, None] * ut)), (x,)


HOPE_LAYER = Layer(
    name="hope", kind=HOPE, init=init, prepared=prepared, run=bank.run, stateful=stateful,
    source="yu2024hope", states={"x": ("h n", layer_states)},
    traits=frozenset({"time-invariant", "transform"}),
    tags=("HOPE layer",),
)  # fmt: skip
