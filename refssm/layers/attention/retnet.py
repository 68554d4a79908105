"""RetNet's retention: linear attention whose heads forget at fixed rates and turn their keys
[sun2023retnet, §2].

    q, k, v = u W_q, u W_k/√(2n), u W_v in each head,   q and k complex
    S_j ← γ e^{iθ_j} S_j + k_j* v,   y = Re Σ_j q_j S_j,   θ_j = 10000^{−j/(n−1)},   j = 0 … n − 1
    out = Σ_heads (silu(u W_gate) ∘ y') W_out,   y' = (y − mean)/√(variance + ε) of each head

γ = 1 − 2^{−5−i} in head i. A complex number is a pair of a key's numbers. The state knows no time:
it turns by θ a step. A piece is computed by `ssd_recurrent` from queries and keys that are turned
by their distance from its start, as in the published code.
"""

from dataclasses import dataclass

import numpy as np

from refssm.domains import complex_states, complex_weights_of_rows
from refssm.layers._frame import Layer, Parameters, parameter
from refssm.layers._parts.heads import drawn, drawn_back, headed, headed_vjp, merged, merged_vjp
from refssm.layers._parts.mixing import plus


@dataclass(frozen=True)
class RetNet(Parameters):
    """Parameters of `retnet`: `g` heads of `n` complex keys and 4n values."""

    W_q: np.ndarray = parameter(
        "g h n", "both parts uniform between ±1/√h", domain=complex_weights_of_rows
    )
    W_k: np.ndarray = parameter(
        "g h n", "both parts uniform between ±1/√h", domain=complex_weights_of_rows
    )
    W_v: np.ndarray = parameter("g h 4n", "uniform between ±1/√h")
    W_gate: np.ndarray = parameter("g h 4n", "uniform between ±1/√h")
    W_out: np.ndarray = parameter("g 4n h", "uniform between ±1/√(4 g n)")


def init(rng, *, h, heads=4, n=8) -> RetNet:
    """New parameters in double precision."""
    W_q, W_k = (drawn(rng, heads, h, 2 * n) for _ in range(2))
    W_q, W_k = (W[..., ::2] + 1j * W[..., 1::2] for W in (W_q, W_k))
    W_v, W_gate = (drawn(rng, heads, h, 4 * n) for _ in range(2))
    return RetNet(W_q, W_k, W_v, W_gate, drawn_back(rng, heads, 4 * n, h))


def decays(g):
    """log(1 − 2^{−5−i}) of g heads."""
    return np.log1p(-(2.0 ** (-5 - np.arange(g))))


def angles(n):
    """θ_j = 10000^{−j/(n−1)}."""
    return 10000.0 ** -np.linspace(0, 1, n)


def _turns(l, theta, dtype):
    """e^{itθ} for t = 0 … l: angles of many turns have no digits in single precision."""
    angle = np.arange(l + 1, dtype=np.result_type(dtype, np.float64))[:, None] * theta
    return np.exp(1j * angle).astype(np.result_type(dtype, np.complex64))


def _parts(z):
    """Real and imaginary parts, side by side."""
    return np.concatenate([z.real, z.imag], axis=-1)


def _joined(x):
    """Back from `_parts`."""
    real, imag = np.split(x, 2, axis=-1)
    return real + 1j * imag


def retained(ops, q, k, v, log_a, theta):
    """y of complex queries and keys (…, g, l, n), values, log decays (g) and angles (n) from rest;
    and the function from its cotangent to those of q, k and v."""
    arguments, turns = _arguments(q, k, v, log_a, theta)
    y = ops.ssd_recurrent(*arguments)

    def back(dy):
        dv, _, dk, dq = ops.ssd_recurrent_vjp(dy, *arguments)
        return *(_joined(d) * turns[1:].conj() for d in (dq, dk)), dv

    return y, back


def _arguments(q, k, v, log_a, theta):
    """Those of `ssd_recurrent`; and the turns of 0 … l steps."""
    turns = np.asarray(_turns(v.shape[-2], theta, v.dtype), like=v)
    steps = np.broadcast_to(log_a[:, None], (len(log_a), v.shape[-2]))
    steps = np.asarray(steps, v.dtype, like=v)
    return (v, steps, _parts(k * turns[1:]), _parts(q * turns[1:])), turns


def _given(p, u):
    """q, k and v; decays and angles."""
    q, k, v = (headed(u, W) for W in (p.W_q, p.W_k, p.W_v))
    g, _, n = p.W_q.shape
    return q, k * _scale(p), v, decays(g), angles(n)


def _scale(p):
    """1/√(2n)."""
    return p.W_v.dtype.type(1 / np.sqrt(max(1, 2 * p.W_q.shape[-1])))


def _constants(y):
    """Scale and shift of a norm without weights."""
    n = y.shape[-1]
    return np.ones(n, y.dtype, like=y), np.zeros(n, y.dtype, like=y)


def run(ops, p, u):
    """The output, and the function from its cotangent to the gradients of `p` and of u."""
    y, retained_back = retained(ops, *_given(p, u))
    one, zero = _constants(y)
    normal, gate = ops.layer_norm(y, one, zero), headed(u, p.W_gate)
    open_ = ops.silu(gate)

    def back(dout):
        dgated, dW_out = merged_vjp(dout, open_ * normal, p.W_out)
        dgate = ops.silu_vjp(dgated * normal, gate)
        dq, dk, dv = retained_back(ops.layer_norm_vjp(dgated * open_, y, one)[0])
        found, du = [], np.zeros_like(u)
        maps = (dq, p.W_q), (dk * _scale(p), p.W_k), (dv, p.W_v), (dgate, p.W_gate)
        for dx, W in maps:
            through, dW = headed_vjp(dx, u, W.conj())
            du = plus(du, through.real)
            found.append(dW)
        return RetNet(*[*found, dW_out]), du

    return merged(open_ * normal, p.W_out), back


def stateful(ops, p, u, state):
    """The output for a piece from a state, and the next state."""
    arguments, turns = _arguments(*_given(p, u))
    before = _parts(np.swapaxes(state[0], -1, -2).conj())
    y, S = ops.ssd_recurrent_stateful(*arguments, before)
    normal = ops.layer_norm(y, *_constants(y))
    out = merged(ops.silu(headed(u, p.W_gate)) * normal, p.W_out)
    return out, (np.swapaxes(_joined(S).conj() * turns[-1], -1, -2),)


RETNET_LAYER = Layer(
    name="retnet", kind=RetNet, init=init, run=run, stateful=stateful,
    source="sun2023retnet", states={"S": ("g n 4n", complex_states)},
    tags=("RetNet", "MultiScaleRetention", "multi-scale retention"),
)  # fmt: skip
