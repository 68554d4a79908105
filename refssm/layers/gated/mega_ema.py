"""Mega's moving average: every channel is averaged by n damped decays [ma2023mega].

    x_k = q x_{k−1} + p β u_k,   p = σ(δ),   q = 1 − σ(δ) σ(α) for each of n dimensions of a channel
    out = silu(n^{−½} Σ_n γ_n x_k,n + ω u_k)

No channel reads another one. Mega's gated attention, which reads this output, is not part of it.
The kernel is `ema_kernel`; a step costs n products a channel.
"""

from dataclasses import dataclass

import numpy as np

from refssm.activations import sigmoid
from refssm.domains import average_weights, layer_states, logits, skips
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts import bank
from refssm.layers._parts.bank import turned

LOGITS, SPREAD = 0.2, 0.02  # published code: deviations of δ and α, and of β from ±1


@dataclass(frozen=True)
class MegaEMA(Parameters):
    """Parameters of `mega_ema`: `n` dimensions of each channel."""

    delta: np.ndarray = parameter("h n", "normal, deviation 0.2", "system", domain=logits)
    alpha: np.ndarray = parameter("h n", "normal, deviation 0.2", "system", domain=logits)
    beta: np.ndarray = parameter(
        "h n", "1, −1, 1, … + normal, deviation 0.02", domain=average_weights
    )
    gamma: np.ndarray = parameter("h n", "normal", domain=average_weights)
    omega: np.ndarray = parameter("h", "normal", domain=skips)


@dataclass(frozen=True)
class MegaKernels(Parameters):
    """The kernels (h, l), and the skip."""

    K: np.ndarray
    omega: np.ndarray


def init(rng, *, h, n=16) -> MegaEMA:
    """New parameters in double precision."""
    delta, alpha, spread = rng.standard_normal((3, h, n))
    beta = (-1.0) ** np.arange(n) + SPREAD * spread
    return MegaEMA(
        LOGITS * delta, LOGITS * alpha, beta, rng.standard_normal((h, n)), rng.standard_normal(h)
    )


def prepared(ops, p, l):
    """The kernels for l steps, and the function from their gradient to that of the parameters."""
    average = p.delta, p.alpha, p.beta, p.gamma

    def back(dq):
        return MegaEMA(*[*ops.ema_kernel_vjp(dq.K, *average, l=l), dq.omega])

    return MegaKernels(ops.ema_kernel(*average, l=l), p.omega), back


def run(ops, p, u):
    """The output, and the function from its cotangent to the gradients of `p` and of u."""
    y = bank.filtered(ops, p.K, p.omega, u)

    def back(dout):
        dK, domega, du = bank.filtered_vjp(ops, ops.silu_vjp(dout, y), p.K, p.omega, u)
        return MegaKernels(dK, domega), du

    return ops.silu(y), back


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    share = sigmoid(p.delta)
    root = p.gamma.dtype.type(1 / np.sqrt(max(1, p.gamma.shape[-1])))
    B, C = (share * p.beta)[..., None], (root * p.gamma)[:, None, :]
    system = 1 - share * sigmoid(p.alpha), B, C, p.omega[:, None, None]
    y, x = ops.diagonal_ssm_stateful(*system, turned(u)[..., None], state[0])
    return ops.silu(turned(y[..., 0])), (x,)


MEGA_EMA_LAYER = Layer(
    name="mega_ema", kind=MegaEMA, init=init, prepared=prepared, run=run, stateful=stateful,
    source="ma2023mega", states={"x": ("h n", layer_states)},
    traits=frozenset({"time-invariant", "transform"}),
    tags=("MultiHeadEMA layer", "MegaMultiDimensionDampedEma", "Mega damped EMA"),
)  # fmt: skip
