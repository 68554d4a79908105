"""Gated DeltaNet: a state that decays and is corrected at the present key [yang2024gated, §3.4].

    q, k, v = silu(k * (u W)) in each head, each with its own W and taps,   q̂, k̂ = x/√(Σ x² + 1e-6)
    β = σ(u W_b),   log g = −e^{log_rate} softplus(u W_a + dt_bias)
    S_t = (I − β_t k̂_t k̂_tᵀ) g_t S_{t−1} + β_t k̂_t v_tᵀ,   y_t = S_tᵀ q̂_t/√n
    out = Σ_heads (scale ∘ y/√(mean y² + ε) ∘ silu(u W_gate)) W_out

The recurrence is `gated_delta_rule`, the lengths `l2_norm`, the last norm `rms_norm_gated`.
"""

from dataclasses import dataclass

import numpy as np

from refssm import initial
from refssm.activations import sigmoid, sigmoid_vjp, softplus, softplus_vjp
from refssm.domains import biases, layer_scales, layer_states, log_rates, weights_of_taps
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts.filters import convolved, convolved_stateful
from refssm.layers._parts.heads import drawn, drawn_back, headed, headed_vjp, merged, merged_vjp
from refssm.layers._parts.mixing import flat, plus, summed


@dataclass(frozen=True)
class GatedDeltaNet(Parameters):
    """Parameters of `gated_deltanet`: `g` heads of `n` keys and `p` values, `t` taps."""

    W_q: np.ndarray = parameter("g h n", "uniform between ±1/√h")
    W_k: np.ndarray = parameter("g h n", "uniform between ±1/√h")
    W_v: np.ndarray = parameter("g h p", "uniform between ±1/√h")
    k_q: np.ndarray = parameter("g n t", "uniform between ±1/√t", domain=weights_of_taps)
    k_k: np.ndarray = parameter("g n t", "uniform between ±1/√t", domain=weights_of_taps)
    k_v: np.ndarray = parameter("g p t", "uniform between ±1/√t", domain=weights_of_taps)
    W_a: np.ndarray = parameter("h g", "uniform between ±1/√h")
    W_b: np.ndarray = parameter("h g", "uniform between ±1/√h")
    dt_bias: np.ndarray = parameter(
        "g", "inverse softplus of a step, log-uniform", "plain", domain=biases
    )
    log_rate: np.ndarray = parameter(
        "g", "log of a rate from 1 to 16, uniform", "system", domain=log_rates
    )
    W_gate: np.ndarray = parameter("g h p", "uniform between ±1/√h")
    scale: np.ndarray = parameter("p", "1", "plain", domain=layer_scales)
    W_out: np.ndarray = parameter("g p h", "uniform between ±1/√(g p)")


def init(rng, *, h, heads=4, n=16, p=16, t=4) -> GatedDeltaNet:
    """New parameters in double precision."""
    W_q, W_k, W_v, W_gate = (drawn(rng, heads, h, size) for size in (n, n, p, p))
    k_q, k_k, k_v = (rng.uniform(-1, 1, (heads, size, t)) / np.sqrt(t) for size in (n, n, p))
    W_a, W_b = (initial.linear(rng, h, heads)[0] for _ in range(2))
    log_rate = np.log(rng.uniform(initial.HEAD_MIN, initial.HEAD_MAX, heads))
    return GatedDeltaNet(
        W_q, W_k, W_v, k_q, k_k, k_v, W_a, W_b, initial.step_biases(rng, heads), log_rate,
        W_gate, np.ones(p), drawn_back(rng, heads, p, h),
    )  # fmt: skip


def _streams(p):
    """Maps, taps and biases, which are 0, of queries, keys and values."""
    taps = (p.W_q, p.k_q), (p.W_k, p.k_k), (p.W_v, p.k_v)
    return tuple((W, k, np.zeros(k.shape[:-1], k.dtype, like=k)) for W, k in taps)


def _of_heads(u, W):
    """u W as (…, g, l)."""
    return np.swapaxes((flat(u) @ W).reshape(*u.shape[:-1], W.shape[-1]), -1, -2)


def _of_heads_vjp(dy, u, W):
    """Gradients of u and W."""
    rows = flat(np.swapaxes(dy, -1, -2))
    return (rows @ W.T).reshape(u.shape), flat(u).T @ rows


def _scale(q):
    """1/√n."""
    return q.dtype.type(1 / np.sqrt(max(1, q.shape[-1])))


def _given(ops, p, u, q, k, v):
    """The arguments of the recurrence; and a and b before their functions."""
    a, b = _of_heads(u, p.W_a) + p.dt_bias[:, None], _of_heads(u, p.W_b)
    log_g = -np.exp(p.log_rate)[:, None] * softplus(a)
    return (ops.l2_norm(q) * _scale(q), ops.l2_norm(k), v, log_g, sigmoid(b)), a, b


def run(ops, p, u):
    """The output, and the function from its cotangent to the gradients of `p` and of u."""
    filtered, backs = zip(*(convolved(ops, u, *stream) for stream in _streams(p)), strict=True)
    arguments, a, b = _given(ops, p, u, *filtered)
    y, z = ops.gated_delta_rule(*arguments), headed(u, p.W_gate)
    normal = ops.rms_norm_gated(y, z, p.scale)

    def back(dout):
        dnormal, dW_out = merged_vjp(dout, normal, p.W_out)
        dy, dz, dscale = ops.rms_norm_gated_vjp(dnormal, y, z, p.scale)
        dq, dk, dv, dlog_g, dbeta = ops.gated_delta_rule_vjp(dy, *arguments)
        q, k, _ = filtered
        cotangents = ops.l2_norm_vjp(dq * _scale(q), q), ops.l2_norm_vjp(dk, k), (dv,)
        du, dW_gate = headed_vjp(dz, u, p.W_gate)
        found = []
        for (g,), stream_back in zip(cotangents, backs, strict=True):
            through, dW, dtaps, _ = stream_back(g)
            du = plus(du, through)
            found.append((dW, dtaps))
        da = softplus_vjp(-np.exp(p.log_rate)[:, None] * dlog_g, a)
        through, dW_a = _of_heads_vjp(da, u, p.W_a)
        du = plus(du, through)
        through, dW_b = _of_heads_vjp(sigmoid_vjp(dbeta, b), u, p.W_b)
        (dW_q, dW_k, dW_v), (dk_q, dk_k, dk_v) = zip(*found, strict=True)
        return GatedDeltaNet(
            dW_q, dW_k, dW_v, dk_q, dk_k, dk_v, dW_a, dW_b, _over_time(da),
            _over_time(dlog_g * arguments[3]), dW_gate, dscale, dW_out,
        ), plus(du, through)  # fmt: skip

    return merged(normal, p.W_out), back


def _over_time(x):
    """The sum of (…, g, l) over all but heads."""
    return summed(np.swapaxes(x, -1, -2))


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    streams = zip(_streams(p), state, strict=False)
    filtered = [convolved_stateful(ops, u, *stream, s) for stream, s in streams]
    arguments, _, _ = _given(ops, p, u, *(x for x, _ in filtered))
    y, S = ops.gated_delta_rule_stateful(*arguments, state[3])
    out = merged(ops.rms_norm_gated(y, headed(u, p.W_gate), p.scale), p.W_out)
    return out, (*(s for _, s in filtered), S)


GATED_DELTANET_LAYER = Layer(
    name="gated_deltanet", kind=GatedDeltaNet, init=init, run=run, stateful=stateful,
    source="yang2024gated",  # states: the last t inputs of the filters, and that of the recurrence
    states={"s_q": ("g n t", layer_states), "s_k": ("g n t", layer_states),
            "s_v": ("g p t", layer_states), "S": ("g n p", layer_states)},
    tags=("GatedDeltaNet layer", "Gated DeltaNet block", "Qwen3NextGatedDeltaNet"),
)  # fmt: skip
