"""Mega's multi-dimensional damped moving average as a kernel [ma2023mega].

    h_k = q h_{k−1} + p β u_k,   y_k = n^{−½} Σ_n γ_n h_k,n,   p = σ(δ),  q = 1 − σ(δ)σ(α)

σ is the logistic function; p weights the input, σ(α) is the damping, q the decay.
"""

import numpy as np

from refssm._declaration.operator import Operator
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.activations import sigmoid
from refssm.diagonal.sums import against, slope_against, times, total
from refssm.domains import coefficients, logits


def _powers(loss, l):
    """q^k with q = 1 − loss: from log1p(−loss) if q ≥ ½, else as powers (log 0 is infinite)."""
    fast, k = loss > 0.5, times(loss, l)
    slow = np.exp(np.log1p(-np.where(fast, 0, loss))[..., :, None] * k)
    return np.where(fast[..., :, None], np.where(fast, 1 - loss, 0)[..., :, None] ** k, slow)


def _scale(x):
    """n^{−½} in the precision of x; 1 if n = 0."""
    return 1 / np.sqrt(np.full((), max(1, x.shape[-1]), np.finfo(x.dtype).dtype))


def ema_kernel(delta, alpha, beta, gamma, *, l):
    """K_k = n^{−½} Σ_n p_n β_n γ_n q_n^k,  p = σ(δ),  q = 1 − σ(δ)σ(α).

    Signature ``(n),(n),(n),(n)->(l)``: `delta` and `alpha` real, before the logistic function,
    `beta` and `gamma` the input and output coefficients, `n` the dimensions of the average, and the
    keyword `l`, the length; leading axes broadcast. Any of float32, float64, longdouble, for `beta`
    and `gamma` their complex types too; the result has the common type of all arguments. Units: `K`
    has those of `beta` times `gamma`.

    Raises ValueError if sizes disagree or `l` is not an integer ≥ 0, TypeError for other types. NaN
    in any of them reaches every k. Source: [ma2023mega].

    >>> import refssm
    >>> refssm.ema_kernel([0.0], [0.0], [8.0], [1.0], l=3)  # p = ½, q = ¾
    array([4.  , 3.  , 2.25])
    """
    p = sigmoid(delta)
    return total(_scale(beta) * (p * beta * gamma), _powers(p * sigmoid(alpha), l))


def ema_kernel_vjp(dk, delta, alpha, beta, gamma, *, l):
    """s = σ(α), p' = p σ(−δ), s' = s σ(−α); ∂q/∂δ = −p' s, ∂q/∂α = −p s';

    ∂K_k/∂δ = n^{−½} β γ p' (q^k − k p s q^{k−1}),  ∂K_k/∂α = −n^{−½} β γ p² s' k q^{k−1}.

    Returns `(ddelta, dalpha, dbeta, dgamma)`, shaped like the arguments.
    """
    p, s = sigmoid(delta), sigmoid(alpha)
    E = _powers(p * s, l)
    S = _scale(beta) * against(dk, E)
    T = slope_against(dk, _scale(beta) * (p * beta * gamma), E)
    ddelta = p * sigmoid(-delta) * ((beta * gamma).conj() * S - s * T)
    dalpha = -(p * (s * sigmoid(-alpha)) * T)
    dbeta, dgamma = p * gamma.conj() * S, p * beta.conj() * S
    return unbroadcast_each((ddelta, dalpha, dbeta, dgamma), (delta, alpha, beta, gamma))


EMA_KERNEL = Operator(
    reference=ema_kernel,
    signature="(n),(n),(n),(n)->(l)",
    inputs={"delta": logits, "alpha": logits, "beta": coefficients, "gamma": coefficients},
    outputs=("k",),
    batch="d, d, d, d",
    traits=frozenset({"causal", "linear:beta", "linear:gamma"}),
    citation="ma2023mega",
    tags=("MultiHeadEMA", "Mega damped exponential moving average", "EMA"),
)
ema_kernel = EMA_KERNEL.checked(ema_kernel)
ema_kernel_vjp = EMA_KERNEL.checked_vjp(ema_kernel_vjp)
