"""HOPE over past and future: two sets of Markov parameters for each channel [yu2024hope].

    K_k = Σ_j markov_j s_{j+1,k},   K'_k = Σ_j markov'_j s'_{j+1,k}  (`hope_kernel`)
    y_i = Σ_{j≤i} K_{i−j} u_j + Σ_{j>i} K'_{j−i−1} u_j + D u_i
    out = GLU(GELU(y) W + b)

Each direction has its own steps. The kernel of the future begins with the next input, as in S4's
published code [gu2022s4]. The layer reads the future: it has no states.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import log_steps, markov_parameters
from refssm.hope import hope_recency_power
from refssm.layers import hope
from refssm.layers._frame import Layer, parameter
from refssm.layers._parts import bank


@dataclass(frozen=True)
class HOPEBidirectional(hope.HOPE):
    """Parameters of `hope_bidirectional`: those of `hope`, and a kernel of the future."""

    log_dt_future: np.ndarray = parameter(
        "h", "log of a step from 1e-3 to 1e-1, uniform", "system", domain=log_steps
    )
    markov_future: np.ndarray = parameter(
        "h n", "normal, divided by √n", "system", domain=markov_parameters
    )


def init(
    rng, *, h, n=64, gamma=0.0, steps="vector", dt_min=initial.DT_MIN, dt_max=initial.DT_MAX
) -> HOPEBidirectional:
    """New parameters in double precision; the options are those of `hope`, and `scalar` is one step
    for each direction."""
    bounds = {"steps": steps, "dt_min": dt_min, "dt_max": dt_max}
    p = hope.init(rng, h=h, n=n, gamma=gamma, **bounds).arrays()
    log_dt = initial.log_steps(rng, h, **bounds)
    markov = hope_recency_power(initial.markov(rng, (h, n)), gamma)
    return HOPEBidirectional(**p, log_dt_future=log_dt, markov_future=markov)


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    past, future = np.exp(p.log_dt), np.exp(p.log_dt_future)

    def back(dq):
        dmarkov, dpast = ops.hope_kernel_vjp(dq.K, p.markov, past, l=l)
        dlater, dfuture = ops.hope_kernel_vjp(dq.back, p.markov_future, future, l=l)
        own = dpast * past, dmarkov, dq.D, dq.W, dq.b
        return HOPEBidirectional(*own, dfuture * future, dlater)

    K = ops.hope_kernel(p.markov, past, l=l)
    later = ops.hope_kernel(p.markov_future, future, l=l)
    return bank.FiltersBothWays(K, p.D, p.W, p.b, later), back


HOPE_BIDIRECTIONAL_LAYER = Layer(
    name="hope_bidirectional", kind=HOPEBidirectional, init=init, prepared=prepared,
    run=bank.run_both_ways, source="yu2024hope", traits=frozenset({"transform"}),
    tags=("HOPE layer bidirectional",),
)  # fmt: skip
