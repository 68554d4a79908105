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
from refssm.domains import log_steps, markov_parameters, shifts, skips
from refssm.layers import _bank as bank
from refssm.layers import hope
from refssm.layers._layer import Layer, Parameters, parameter


@dataclass(frozen=True)
class HOPEBidirectional(Parameters):
    """Parameters of `hope_bidirectional`; those of the future have names with `_future`."""

    log_dt: np.ndarray = parameter(
        "h", "log of a step from 1e-3 to 1e-1, uniform", "system", domain=log_steps
    )
    markov: np.ndarray = parameter(
        "h n", "normal, divided by √n", "system", domain=markov_parameters
    )
    log_dt_future: np.ndarray = parameter(
        "h", "log of a step from 1e-3 to 1e-1, uniform", "system", domain=log_steps
    )
    markov_future: np.ndarray = parameter(
        "h n", "normal, divided by √n", "system", domain=markov_parameters
    )
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h", domain=shifts)


def init(rng, *, h, n=64, dt_min=initial.DT_MIN, dt_max=initial.DT_MAX) -> HOPEBidirectional:
    """New parameters in double precision."""
    one = hope.init(rng, h=h, n=n, dt_min=dt_min, dt_max=dt_max)
    log_dt = np.log(initial.steps(rng, h, dt_min=dt_min, dt_max=dt_max))
    markov = initial.markov(rng, (h, n))
    return HOPEBidirectional(one.log_dt, one.markov, log_dt, markov, one.D, one.W, one.b)


def _halves(p):
    """The Markov parameters and the steps of each direction."""
    return (p.markov, np.exp(p.log_dt)), (p.markov_future, np.exp(p.log_dt_future))


def _kernels(ops, p, l):
    return [ops.hope_kernel(*half, l=l) for half in _halves(p)]


def forward(ops, p, u):
    """The output for a signal (…, l, h)."""
    y = bank.filtered_both_ways(ops, *_kernels(ops, p, u.shape[-2]), p.D, u)
    return bank.mixed(ops, p, y)


def vjp(ops, dy, p, u):
    """Gradients of the parameters, and of u."""
    l = u.shape[-2]
    dkernels, others, du = bank.vjp_both_ways(ops, dy, _kernels(ops, p, l), p, u)
    found = []
    for dK, (markov, dt) in zip(dkernels, _halves(p), strict=True):
        dmarkov, ddt = ops.hope_kernel_vjp(dK, markov, dt, l=l)
        found += [ddt * dt, dmarkov]
    return HOPEBidirectional(*found, *others), du


HOPE_BIDIRECTIONAL_LAYER = Layer(
    name="hope_bidirectional", kind=HOPEBidirectional, init=init, forward=forward, vjp=vjp,
    sizes={"n": 64}, source="yu2024hope", traits=frozenset({"transform"}),
)  # fmt: skip
