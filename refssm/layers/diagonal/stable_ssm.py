"""Stable SSM: real diagonal systems whose rates are functions of free weights [wang2024stablessm].

    exp:       rate = e^weight
    softplus:  rate = log(1 + e^weight)
    best:      rate = 1/(weight² + ½)
    K_k = Σ_n C_n dt φ₁(dt λ_n) e^{dt λ_n k},   λ = −rate,   dt = e^{log_dt}
    y = GLU(GELU(K * u + D u) W + b)

Each is a layer of its name. Under all three no weight makes a mode grow. Under the last one, the
gradient by a weight is at most 2 |weight| times that of the memory's length 1/rate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from refssm import initial
from refssm.activations import sigmoid, softplus
from refssm.domains import (
    layer_entries,
    layer_states,
    log_steps,
    rate_weights,
    shifts,
    skips,
)
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank

LEAST = 0.5  # in the best one's denominator: rates are at most 2
DT_MAX = 1.0  # of the first steps: rates start at most at 1


@dataclass(frozen=True)
class StableSSM(Parameters):
    """Parameters of `stable_ssm_exp`."""

    log_dt: np.ndarray = parameter(
        "h", "log of a step from 1e-3 to 1, uniform", "system", domain=log_steps
    )
    weight: np.ndarray = parameter(
        "h n", "such that rates are 1/n, 2/n, … 1", "system", domain=rate_weights
    )
    C: np.ndarray = parameter("h n", "normal", domain=layer_entries)
    D: np.ndarray = parameter("h", "normal", domain=skips)
    W: np.ndarray = parameter("h 2h", "uniform between ±1/√h")
    b: np.ndarray = parameter("2h", "uniform between ±1/√h", domain=shifts)


@dataclass(frozen=True)
class StableSSMSoftplus(StableSSM):
    """Parameters of `stable_ssm_softplus`: those of `stable_ssm_exp`."""


@dataclass(frozen=True)
class StableSSMBest(StableSSM):
    """Parameters of `stable_ssm_best`: those of `stable_ssm_exp`."""


class RateMap(NamedTuple):
    """The rate of a weight, its derivative, and the weight of a rate."""

    rate: Callable
    slope: Callable
    weight: Callable


def _best(weight):
    """1/(weight² + ½)."""
    return 1 / (weight * weight + weight.dtype.type(LEAST))


EXP = RateMap(np.exp, np.exp, np.log)
SOFTPLUS = RateMap(softplus, sigmoid, lambda rate: rate + np.log(-np.expm1(-rate)))
BEST = RateMap(_best, lambda w: -2 * w * _best(w) ** 2, lambda rate: np.sqrt(1 / rate - LEAST))


def _init(kind, rates, rng, h, n, steps):
    log_dt = initial.log_steps(rng, h, **steps)
    weight = rates.weight(np.arange(1, n + 1) / n) + np.zeros((h, n))
    C, D = rng.standard_normal((h, n)), rng.standard_normal(h)
    return kind(log_dt, weight, C, D, *initial.linear(rng, h, 2 * h))


def _starting(kind, rates):
    def init(rng, *, h, n=32, steps="vector", dt_min=initial.DT_MIN, dt_max=DT_MAX) -> StableSSM:
        """New parameters in double precision; `steps` is vector, or scalar."""
        return _init(kind, rates, rng, h, n, {"steps": steps, "dt_min": dt_min, "dt_max": dt_max})

    return init


def _prepared(rates, ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    w, dt = -rates.rate(p.weight), np.exp(p.log_dt)
    one = np.ones_like(w)

    def back(dq):
        dw, _, dC, ddt = ops.diagonal_kernel_zoh_vjp(dq.K, w, one, p.C, dt, l=l)
        return type(p)(ddt * dt, -dw * rates.slope(p.weight), dC, dq.D, dq.W, dq.b)

    return bank.Filters(ops.diagonal_kernel_zoh(w, one, p.C, dt, l=l), p.D, p.W, p.b), back


def _stateful(rates, ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    w, dt = -rates.rate(p.weight), np.exp(p.log_dt)
    a, B = ops.discretize_diagonal_zoh(w, np.ones_like(w)[..., None], dt[:, None] + 0 * w)
    ut = bank.turned(u)[..., None]
    y, x = ops.diagonal_ssm_stateful(a, B, p.C[:, None, :], p.D[:, None, None], ut, state[0])
    return bank.mixed(ops, p, bank.turned(y[..., 0])), (x,)


def _layer(name, kind, rates):
    return Layer(
        name=f"stable_ssm_{name}", kind=kind, init=_starting(kind, rates),
        prepared=partial(_prepared, rates), run=bank.run, stateful=partial(_stateful, rates),
        source="wang2024stablessm", states={"x": ("h n", layer_states)},
        traits=frozenset({"time-invariant", "transform"}),
        tags=(f"StableSSM {name}", f"STABLESSMKernel parameterization={name}"),
    )  # fmt: skip


STABLE_SSM_EXP_LAYER = _layer("exp", StableSSM, EXP)
STABLE_SSM_SOFTPLUS_LAYER = _layer("softplus", StableSSMSoftplus, SOFTPLUS)
STABLE_SSM_BEST_LAYER = _layer("best", StableSSMBest, BEST)
