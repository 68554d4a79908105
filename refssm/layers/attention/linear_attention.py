"""Causal linear attention: a kernel of positive features in place of the softmax
[katharopoulos2020transformers, §3.3].

    q, k, v = u W_q, u W_k, u W_v in each head,   φ(x) = elu(x) + 1
    S_t = S_{t−1} + v_t φ(k_t)ᵀ,   z_t = z_{t−1} + φ(k_t),   y_t = S_t φ(q_t) / (z_t · φ(q_t))
    out = Σ_heads y W_out

It is `ssd_recurrent` without decay, with one more value that is always 1: this adds up to z.
"""

from dataclasses import dataclass

import numpy as np

from refssm.domains import feature_sums, layer_states
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts.heads import drawn, drawn_back, headed, headed_vjp, merged, merged_vjp
from refssm.layers._parts.mixing import plus


@dataclass(frozen=True)
class LinearAttention(Parameters):
    """Parameters of `linear_attention`: `g` heads of `n` keys and `p` values."""

    W_q: np.ndarray = parameter("g h n", "uniform between ±1/√h")
    W_k: np.ndarray = parameter("g h n", "uniform between ±1/√h")
    W_v: np.ndarray = parameter("g h p", "uniform between ±1/√h")
    W_out: np.ndarray = parameter("g p h", "uniform between ±1/√(g p)")


def init(rng, *, h, heads=4, n=16, p=16) -> LinearAttention:
    """New parameters in double precision."""
    W_q, W_k, W_v = (drawn(rng, heads, h, size) for size in (n, n, p))
    return LinearAttention(W_q, W_k, W_v, drawn_back(rng, heads, p, h))


def features(x):
    """φ(x) = elu(x) + 1: x + 1 above 0, e^x below."""
    return np.maximum(x, 0) + np.exp(np.minimum(x, 0))


def features_vjp(dy, x):
    """dy e^{min(x, 0)}."""
    return dy * np.exp(np.minimum(x, 0))


def _parts(p, u):
    """q, k, and v with a last value of 1; and decays of e^0."""
    q, k, v = (headed(u, W) for W in (p.W_q, p.W_k, p.W_v))
    one = np.ones((*v.shape[:-1], 1), v.dtype, like=v)
    return q, k, np.concatenate([v, one], axis=-1), np.zeros_like(one[..., 0])


def run(ops, p, u):
    """The output, and the function from its cotangent to the gradients of `p` and of u."""
    q, k, v, log_a = _parts(p, u)
    arguments = v, log_a, features(k), features(q)
    sums = ops.ssd_recurrent(*arguments)
    weight = sums[..., -1:]
    y = sums[..., :-1] / weight

    def back(dout):
        dy, dW_out = merged_vjp(dout, y, p.W_out)
        dy = dy / weight
        dsums = np.concatenate([dy, -(dy * y).sum(-1, keepdims=True)], axis=-1)
        dv, _, dk, dq = ops.ssd_recurrent_vjp(dsums, *arguments)
        du, dW_v = headed_vjp(dv[..., :-1], u, p.W_v)
        through, dW_k = headed_vjp(features_vjp(dk, k), u, p.W_k)
        du = plus(du, through)
        through, dW_q = headed_vjp(features_vjp(dq, q), u, p.W_q)
        return LinearAttention(dW_q, dW_k, dW_v, dW_out), plus(du, through)

    return merged(y, p.W_out), back


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    q, k, v, log_a = _parts(p, u)
    before = np.concatenate([state[0], state[1][..., None, :]], axis=-2)
    sums, S = ops.ssd_recurrent_stateful(v, log_a, features(k), features(q), before)
    y = sums[..., :-1] / sums[..., -1:]
    return merged(y, p.W_out), (S[..., :-1, :], S[..., -1, :])


LINEAR_ATTENTION_LAYER = Layer(
    name="linear_attention", kind=LinearAttention, init=init, run=run, stateful=stateful,
    source="katharopoulos2020transformers",
    states={"S": ("g p n", layer_states), "z": ("g n", feature_sums)},
    tags=("CausalLinearAttention", "linear transformer layer", "elu feature map attention"),
)  # fmt: skip
