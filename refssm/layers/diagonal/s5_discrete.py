"""S5 whose parameter is the discrete system itself: an ablation of its paper [smith2023s5].

    x_k = a x_{k−1} + B u_k,   y_k = 2 Re(C x_k) + D u_k
    out = g σ(g W + b),   g = GELU(y)

It starts as `s5` does, discretized. There is no step in time, and nothing keeps |a| below 1.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.discretize import discretize_diagonal_zoh
from refssm.domains import complex_states, complex_weights, layer_decays, shifts, skips
from refssm.layers import s5
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import ssm


@dataclass(frozen=True)
class S5Discrete(Parameters):
    """Parameters of `s5_discrete`."""

    a: np.ndarray = parameter(
        "n", "e^{dt w} of the poles and steps of `s5`", "system", domain=layer_decays
    )
    B: np.ndarray = parameter(
        "n h", "dt φ₁(dt w) times the B of `s5`", "system", domain=complex_weights
    )
    C: np.ndarray = parameter("h n", "C₀ V, C₀ normal, variance 1/(2n)", domain=complex_weights)
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h h", "uniform between ±1/√h")
    b: np.ndarray = parameter("h", "uniform between ±1/√h", domain=shifts)


def init(
    rng, *, h, n=32, blocks=1, poles="hippo-n", dt_min=initial.DT_MIN, dt_max=initial.DT_MAX
) -> S5Discrete:
    """New parameters in double precision: those of `s5` with its options, discretized."""
    p = s5.init(rng, h=h, n=n, blocks=blocks, poles=poles, dt_min=dt_min, dt_max=dt_max)
    a, B = discretize_diagonal_zoh(p.w, p.B, np.exp(p.log_dt))
    return S5Discrete(a, B, p.C, p.D, p.W, p.b)


def prepared(ops, p, l):
    """The system as it is, and the function from its gradient to that of the parameters."""
    q = ssm.System(p.a, p.B, 2 * p.C, p.D, p.W, p.b)
    return q, lambda dq: S5Discrete(dq.a, dq.B, 2 * dq.C, dq.D, dq.W, dq.b)


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    y, x = ops.diagonal_ssm_real_stateful(p.a, p.B, p.C, np.diag(p.D), u, state[0])
    return s5.gated(ops, p, y)[0], (x,)


S5_DISCRETE_LAYER = Layer(
    name="s5_discrete", kind=S5Discrete, init=init, prepared=prepared, run=s5.run,
    stateful=stateful, source="smith2023s5", states={"x": ("n", complex_states)},
    traits=frozenset({"time-invariant"}),
    tags=("S5 layer discrete", "S5 without discretization", "S5 discrete parameterization"),
)  # fmt: skip
