"""Oracles of layers with gates around a fixed or a gated recurrence, step by step."""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp

from refssm.oracle.layers.attention import _merged, _pushed
from refssm.oracle.layers.systems import (
    _gelu,
    _held,
    _linear,
    _poles,
    _product,
    _sigmoid,
    _silu,
    _softplus,
    _zeros,
)


def h3_layer(u, W_q, W_k, W_v, C_shift, D_shift, log_dt, log_rate, frequency, C, D, W_out):
    """From rest."""
    s0 = [[_zeros(len(taps)) for taps in head] for head in C_shift]
    x0 = [[[_zeros(len(row)) for _ in head] for _ in head] for row, head in zip(C, s0, strict=True)]
    parameters = W_q, W_k, W_v, C_shift, D_shift, log_dt, log_rate, frequency, C, D, W_out
    return h3_layer_stateful(u, *parameters, s0, x0)[0]


def h3_layer_stateful(
    u, W_q, W_k, W_v, C_shift, D_shift, log_dt, log_rate, frequency, C, D, W_out, s0, x0
):
    """In each head x_ij ← e^{dt w} x_ij + ((e^{dt w} − 1)/w) k'_i v_j, and Σ_i q_i (2 Re(C x_ij) +
    D k'_i v_j), where k' = Σ_j C_j k_{t−j} + D k of the shift."""
    systems, s, x, out = [], s0, x0, []
    for rates, frequencies, t in zip(log_rate, frequency, log_dt, strict=True):
        w = _poles(rates, frequencies)
        systems.append(_held(w, [mp.exp(t)] * len(w)))
    for row in u:
        q, k, v = ([_product(row, M) for M in W] for W in (W_q, W_k, W_v))
        s = [_pushed(*of_head) for of_head in zip(s, k, strict=True)]
        shifted = [[mp.fdot(taps, reversed(past)) + d * k_i
                    for taps, past, d, k_i in zip(*of_head, strict=True)]
                   for of_head in zip(C_shift, s, D_shift, k, strict=True)]  # fmt: skip
        x = [[[_driven(x_ij, *system, k_i * v_j) for x_ij, v_j in zip(x_i, v_g, strict=True)]
              for x_i, k_i in zip(x_g, k_g, strict=True)]
             for x_g, system, k_g, v_g in zip(x, systems, shifted, v, strict=True)]  # fmt: skip
        y = [[mp.fsum(q_i * (2 * mp.re(mp.fdot(c, x_i[j])) + d * k_i * v_j)
                      for q_i, x_i, k_i in zip(q_g, x_g, k_g, strict=True))
              for j, v_j in enumerate(v_g)]
             for q_g, x_g, k_g, v_g, c, d in zip(q, x, shifted, v, C, D, strict=True)]  # fmt: skip
        out.append(_merged(y, W_out))
    return out, s, x


def _driven(x, a, held, value):
    """a x + held · value of each mode."""
    return [a_n * x_n + b_n * value for a_n, x_n, b_n in zip(a, x, held, strict=True)]


def rglru_layer(u, *parameters):
    """From rest."""
    k = parameters[4]
    s0, x0 = [[_zeros(len(taps)) for taps in head] for head in k], [_zeros(len(head)) for head in k]
    return rglru_layer_stateful(*[u, *parameters, s0, x0])[0]


def rglru_layer_stateful(
    u, W_gate, b_gate, W_u, b_u, k, k_bias, W_r, b_r, W_i, b_i, a_param, W_out, b_out, s0, x0
):
    """In each head v = Σ_j k_j (u W_u + b_u)_{t−j} + k_bias, x ← a x + √(1 − a²) σ(v W_i + b_i) v
    with a = exp(−8 softplus(a_param) σ(v W_r + b_r)), and x times GELU of the other map."""
    s, x, out = s0, x0, []
    for row in u:
        gates, inner = (
            [_linear(row, *of_head) for of_head in zip(W, b, strict=True)]
            for W, b in ((W_gate, b_gate), (W_u, b_u))
        )
        s = [_pushed(*of_head) for of_head in zip(s, inner, strict=True)]
        v = [[mp.fdot(taps, reversed(past)) + b for taps, past, b in zip(*of_head, strict=True)]
             for of_head in zip(k, s, k_bias, strict=True)]  # fmt: skip
        x = [_real_gated(*of_head)
             for of_head in zip(x, v, W_r, b_r, W_i, b_i, a_param, strict=True)]  # fmt: skip
        y = [[_gelu(z) * x_p for z, x_p in zip(*of_head, strict=True)]
             for of_head in zip(gates, x, strict=True)]  # fmt: skip
        out.append([a + b for a, b in zip(_merged(y, W_out), b_out, strict=True)])
    return out, s, x


def _real_gated(x, v, W_r, b_r, W_i, b_i, a_param):
    """The next state of one head."""
    after = []
    for x_p, v_p, r, i, rate in zip(
        x, v, _linear(v, W_r, b_r), _linear(v, W_i, b_i), a_param, strict=True
    ):
        log_a = -8 * _softplus(rate) / (1 + mp.exp(-r))
        root = mp.sqrt(-mp.expm1(2 * log_a))
        after.append(mp.exp(log_a) * x_p + root * v_p / (1 + mp.exp(-i)))
    return after


def gss_layer(u, W_u, W_gate, log_rate, log_phase, C, D, W_wide, W_out):
    """From rest."""
    parameters = W_u, W_gate, log_rate, log_phase, C, D, W_wide, W_out
    return gss_layer_stateful(u, *parameters, [_zeros(len(row)) for row in C])[0]


def gss_layer_stateful(u, W_u, W_gate, log_rate, log_phase, C, D, W_wide, W_out, x0):
    """In each channel x ← e^w x + ((e^w − 1)/w) v and Re(C x) + D v, v = GELU(u W_u); then
    (GELU(u W_gate) times the row W_wide) W_out."""
    pairs = zip(log_rate, log_phase, strict=True)
    system = _held([mp.mpc(-mp.exp(r), mp.exp(f)) for r, f in pairs], [mp.mpf(1)] * len(log_rate))
    x, out = x0, []
    for row in u:
        v = [_gelu(a) for a in _product(row, W_u)]
        x = [_driven(x_m, *system, v_m) for x_m, v_m in zip(x, v, strict=True)]
        y = [mp.re(mp.fdot(c, x_m)) + d * v_m for c, x_m, d, v_m in zip(C, x, D, v, strict=True)]
        both = zip(_product(row, W_gate), _product(y, W_wide), strict=True)
        out.append(_product([_gelu(a) * b for a, b in both], W_out))
    return out, x


def mega_ema_layer(u, delta, alpha, beta, gamma, omega):
    """From rest."""
    x0 = [_zeros(len(row)) for row in delta]
    return mega_ema_layer_stateful(u, delta, alpha, beta, gamma, omega, x0)[0]


def mega_ema_layer_stateful(u, delta, alpha, beta, gamma, omega, x0):
    """x ← (1 − p σ(α)) x + p β u, p = σ(δ); silu(γ · x/√n + ω u) in each channel."""
    x, out = x0, []
    for row in u:
        x = [
            [(1 - _sigmoid(d) * _sigmoid(a)) * x_n + _sigmoid(d) * b * value
             for d, a, b, x_n in zip(*of_channel, strict=True)]
            for *of_channel, value in zip(delta, alpha, beta, x, row, strict=True)
        ]  # fmt: skip
        read = zip(gamma, x, omega, row, strict=True)
        out.append([_silu(mp.fdot(g, x_h) / mp.sqrt(max(1, len(g))) + w * value)
                    for g, x_h, w, value in read])  # fmt: skip
    return out, x
