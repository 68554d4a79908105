"""The recurrent block of Griffin: a gated recurrence of single numbers, beside a gate
[de2024griffin].

    v = k * (u W_u + b_u) + k_bias in each of g heads of p numbers
    r = σ(v W_r + b_r),   i = σ(v W_i + b_i) in each head
    x_t = a_t x_{t−1} + √(1 − a_t²) i_t v_t,   log a_t = −8 softplus(a_param) r_t
    out = Σ_heads (gelu(u W_gate + b_gate) ∘ x) W_out + b_out

The recurrence is `rg_lru`. Its gates read the numbers of their head: the matrix of all of them has
g blocks. The filter has no activation.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.activations import sigmoid, sigmoid_vjp
from refssm.domains import layer_states, rate_logits, shifts, weights_of_rows, weights_of_taps
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts.bank import turned
from refssm.layers._parts.heads import beside, headed, headed_vjp, merged, merged_vjp, split
from refssm.layers._parts.mixing import plus, summed

FILTER_VARIANCE = 0.01  # published code: w_init_variance_scale of Conv1D


@dataclass(frozen=True)
class RecurrentBlock(Parameters):
    """Parameters of `rglru`: `g` heads of `p` numbers, `t` taps."""

    W_gate: np.ndarray = parameter("g h p", "normal, variance 1/h")
    b_gate: np.ndarray = parameter("g p", "0", domain=shifts)
    W_u: np.ndarray = parameter("g h p", "normal, variance 1/h")
    b_u: np.ndarray = parameter("g p", "0", domain=shifts)
    k: np.ndarray = parameter("g p t", "normal, variance 0.01/t", domain=weights_of_taps)
    k_bias: np.ndarray = parameter("g p", "0", domain=shifts)
    W_r: np.ndarray = parameter("g p p", "normal, variance 1/p", domain=weights_of_rows)
    b_r: np.ndarray = parameter("g p", "0", domain=shifts)
    W_i: np.ndarray = parameter("g p p", "normal, variance 1/p", domain=weights_of_rows)
    b_i: np.ndarray = parameter("g p", "0", domain=shifts)
    a_param: np.ndarray = parameter(
        "g p", "such that e^{−8 softplus} is uniform from 0.9 to 0.999", "system",
        domain=rate_logits,
    )  # fmt: skip
    W_out: np.ndarray = parameter("g p h", "normal, variance 1/(g p)")
    b_out: np.ndarray = parameter("h", "0", domain=shifts)


def init(rng, *, h, p=8, t=4) -> RecurrentBlock:
    """New parameters in double precision; g = h/p, rounded up."""
    g = -(-h // p)
    shapes = (g, h, p), (g, h, p), (g, p, p), (g, p, p)
    W_gate, W_u, W_r, W_i = (rng.standard_normal(s) / np.sqrt(s[1]) for s in shapes)
    k = rng.standard_normal((g, p, t)) * np.sqrt(FILTER_VARIANCE / t)
    rate = -np.log(rng.uniform(initial.GATE_MIN, initial.GATE_MAX, (g, p))) / 8
    zero = np.zeros((g, p))
    return RecurrentBlock(
        W_gate, zero, W_u, zero, k, zero, W_r, zero, W_i, zero, np.log(np.expm1(rate)),
        rng.standard_normal((g, p, h)) / np.sqrt(g * p), np.zeros(h),
    )  # fmt: skip


def _mapped(u, W, b):
    """u W_g + b_g in each head, as (…, g, l, p)."""
    return headed(u, W) + b[:, None, :]


def _mapped_vjp(dx, u, W):
    """Gradients of u, W and b."""
    return *headed_vjp(dx, u, W), _over_time(dx)


def _over_time(dx):
    """The sum of (…, g, l, p) over all but heads and numbers."""
    g, _, p = dx.shape[-3:]
    return summed(beside(dx)).reshape(g, p)


def _block_vjp(dx, x, W):
    """Gradients of x (…, g, l, p) and of W (g, p, p) from that of x W."""
    dW = turned(x) @ dx
    return dx @ turned(W), dW.sum(tuple(range(dW.ndim - W.ndim)))


def _logits(p, v):
    """Gates of recurrence and input before their logistic functions."""
    return v @ p.W_r + p.b_r[:, None, :], v @ p.W_i + p.b_i[:, None, :]


def _arguments(p, v, logits):
    """Those of `rg_lru`, with the numbers of all heads side by side."""
    r, i = (sigmoid(beside(z)) for z in logits)
    return beside(v), r, i, p.a_param.reshape(-1)


def run(ops, p, u):
    """The output, and the function from its cotangent to the gradients of `p` and of u."""
    raw, z = turned(_mapped(u, p.W_u, p.b_u)), _mapped(u, p.W_gate, p.b_gate)
    v = turned(ops.short_convolution(raw, p.k) + p.k_bias[..., None])
    logits = _logits(p, v)
    arguments = _arguments(p, v, logits)
    x, gate = split(ops.rg_lru(*arguments), *p.k_bias.shape), ops.gelu(z)

    def back(dout):
        dgated, dW_out = merged_vjp(dout, gate * x, p.W_out)
        dstates, *dgates, da_param = ops.rg_lru_vjp(beside(dgated * gate), *arguments)
        dv, found = split(dstates, *p.k_bias.shape), []
        for dgate, logit, W in zip(dgates, logits, (p.W_r, p.W_i), strict=True):
            dlogit = sigmoid_vjp(split(dgate, *p.k_bias.shape), logit)
            through, dW = _block_vjp(dlogit, v, W)
            dv = dv + through
            found += [dW, _over_time(dlogit)]
        draw, dk = ops.short_convolution_vjp(turned(dv), raw, p.k)
        du, *of_gate = _mapped_vjp(ops.gelu_vjp(dgated * x, z), u, p.W_gate)
        through, *of_u = _mapped_vjp(turned(draw), u, p.W_u)
        return RecurrentBlock(*[
            *of_gate, *of_u, dk, _over_time(dv), *found, da_param.reshape(p.a_param.shape),
            dW_out, summed(dout),
        ]), plus(du, through)  # fmt: skip

    return merged(gate * x, p.W_out) + p.b_out, back


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    raw, gate = turned(_mapped(u, p.W_u, p.b_u)), ops.gelu(_mapped(u, p.W_gate, p.b_gate))
    v, newest = ops.short_convolution_stateful(raw, p.k, state[0])
    v = turned(v + p.k_bias[..., None])
    before = state[1].reshape(*state[1].shape[:-2], 1, p.a_param.size)
    found = ops.rg_lru_from(*_arguments(p, v, _logits(p, v)), before[..., 0, :])
    last = np.concatenate([before, found], axis=-2)[..., -1, :]
    out = merged(gate * split(found, *p.k_bias.shape), p.W_out) + p.b_out
    return out, (newest, last.reshape(state[1].shape))


RGLRU_LAYER = Layer(
    name="rglru", kind=RecurrentBlock, init=init, run=run, stateful=stateful,
    source="de2024griffin",  # states: the last t inputs of the filter, and that of the recurrence
    states={"s": ("g p t", layer_states), "x": ("g p", layer_states)},
    tags=("RecurrentGemmaRecurrentBlock", "Griffin recurrent block", "RGLRU block"),
)  # fmt: skip
