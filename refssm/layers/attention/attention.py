"""Causal softmax attention over a window, with a score for each distance [vaswani2017attention].

    q, k, v = u W_q, u W_k, u W_v in each head
    y_i = Σ_j w_ij v_j,   w_ij = e^{s_ij} / Σ_j e^{s_ij},   s_ij = q_i · k_j/√n + bias_{i−j}
    out = Σ_heads y W_out

Each sum is over 0 ≤ i − j < t: the step itself and the t − 1 before. The bias makes the masks of
papers: 0 is a local window, the full causal mask if t is at least the length; −(i − j) times a
slope of the head is ALiBi [press2022alibi]. The state is a cache of the last t keys and values.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.domains import cached_steps, layer_states, score_biases
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts.heads import drawn, drawn_back, headed, headed_vjp, merged, merged_vjp
from refssm.layers._parts.mixing import plus
from refssm.layers._parts.softmax import attended, attended_vjp


@dataclass(frozen=True)
class SoftmaxAttention(Parameters):
    """Parameters of `attention`: `g` heads of `n` keys and `p` values, a window of `t` steps."""

    W_q: np.ndarray = parameter("g h n", "uniform between ±1/√h")
    W_k: np.ndarray = parameter("g h n", "uniform between ±1/√h")
    W_v: np.ndarray = parameter("g h p", "uniform between ±1/√h")
    bias: np.ndarray = parameter(
        "g t", "0, or ALiBi's −slope · distance", "system", domain=score_biases
    )
    W_out: np.ndarray = parameter("g p h", "uniform between ±1/√(g p)")


def init(rng, *, h, heads=4, n=16, p=16, t=64, bias="zero") -> SoftmaxAttention:
    """New parameters in double precision; `bias` is zero or alibi, `t` the window."""
    W_q, W_k, W_v = (drawn(rng, heads, h, size) for size in (n, n, p))
    scores = initial.score_biases(bias, heads=heads, t=t)
    return SoftmaxAttention(W_q, W_k, W_v, scores, drawn_back(rng, heads, p, h))


def _parts(p, u):
    """q/√n, k and v."""
    q, k, v = (headed(u, W) for W in (p.W_q, p.W_k, p.W_v))
    return q * _scale(p), k, v


def _scale(p):
    """1/√n."""
    return p.W_q.dtype.type(1 / np.sqrt(max(1, p.W_q.shape[-1])))


def run(ops, p, u):
    """The output, and the function from its cotangent to the gradients of `p` and of u."""
    q, k, v = _parts(p, u)
    y, w = attended(q, k, v, p.bias)

    def back(dout):
        dy, dW_out = merged_vjp(dout, y, p.W_out)
        dq, dk, dv, dbias = attended_vjp(dy, y, w, q, k, v, p.bias)
        du, dW_v = headed_vjp(dv, u, p.W_v)
        through, dW_k = headed_vjp(dk, u, p.W_k)
        du = plus(du, through)
        through, dW_q = headed_vjp(dq * _scale(p), u, p.W_q)
        return SoftmaxAttention(dW_q, dW_k, dW_v, dbias, dW_out), plus(du, through)

    return merged(y, p.W_out), back


def stateful(ops, p, u, state):
    """The output for a piece from a cache, and the next cache."""
    (q, *new), l = _parts(p, u), u.shape[-2]
    new.append(np.ones((*u.shape[:-1], 1), u.dtype, like=u))
    seen = np.broadcast_to(state[2], (*u.shape[:-2], state[2].shape[-1]))[..., None]
    old = *state[:2], seen
    k, v, seen = (np.concatenate(pair, axis=-2) for pair in zip(old, new, strict=True))
    y, _ = attended(q, k, v, p.bias, seen[..., None, None, :, 0])
    return merged(y, p.W_out), (k[..., l:, :], v[..., l:, :], seen[..., l:, 0])


ATTENTION_LAYER = Layer(
    name="attention", kind=SoftmaxAttention, init=init, run=run, stateful=stateful,
    source="vaswani2017attention",  # states: the cache, and 1 where it holds a step, else 0
    states={"K": ("g t n", layer_states), "V": ("g t p", layer_states),
            "seen": ("t", cached_steps)},
    traits=frozenset({"matrix-product", "quadratic"}),
    tags=("scaled_dot_product_attention", "MultiheadAttention", "ALiBi", "sliding window"),
)  # fmt: skip
