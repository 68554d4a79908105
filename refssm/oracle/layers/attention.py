"""Oracles of layers of heads with queries, keys and values, step by step.

Every matrix is (g, h, n): a list of g matrices for rows.
"""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp

from refssm.oracle.layers.systems import _product, _silu, _softplus, _zeros


def linear_attention_layer(u, W_q, W_k, W_v, W_out):
    """From rest."""
    keys, values = len(W_k[0][0]), len(W_v[0][0])
    S0, z0 = [[_zeros(keys) for _ in range(values)] for _ in W_k], [_zeros(keys) for _ in W_k]
    return linear_attention_layer_stateful(u, W_q, W_k, W_v, W_out, S0, z0)[0]


def linear_attention_layer_stateful(u, W_q, W_k, W_v, W_out, S0, z0):
    """S ← S + v φ(k)ᵀ, z ← z + φ(k), y = S φ(q)/(z · φ(q)) in each head; the sum of y W_out."""
    S, z, out = S0, z0, []
    for row in u:
        q, k = ([_features(_product(row, M)) for M in W] for W in (W_q, W_k))
        v = [_product(row, M) for M in W_v]
        S = [_written(*of_head) for of_head in zip(S, v, k, strict=True)]
        z = [[a + b for a, b in zip(*of_head, strict=True)] for of_head in zip(z, k, strict=True)]
        read = zip(S, q, z, strict=True)
        y = [[mp.fdot(s, q_g) / mp.fdot(z_g, q_g) for s in S_g] for S_g, q_g, z_g in read]
        out.append(_merged(y, W_out))
    return out, S, z


def _features(x):
    """elu(x) + 1."""
    return [a + 1 if a >= 0 else mp.exp(a) for a in x]


def _written(S, v, k):
    """S + v kᵀ."""
    return [[s + v_p * k_n for s, k_n in zip(row, k, strict=True)]
            for row, v_p in zip(S, v, strict=True)]  # fmt: skip


def _merged(y, W_out):
    """Σ_g y_g W_g."""
    parts = [_product(y_g, W) for y_g, W in zip(y, W_out, strict=True)]
    return [mp.fsum(terms) for terms in zip(*parts, strict=True)]


def retnet_layer(u, W_q, W_k, W_v, W_gate, W_out):
    """From rest."""
    S0 = [[_zeros(len(W_v[0][0])) for _ in W[0]] for W in W_q]
    return retnet_layer_stateful(u, W_q, W_k, W_v, W_gate, W_out, S0)[0]


def retnet_layer_stateful(u, W_q, W_k, W_v, W_gate, W_out, S0):
    """S_j ← γ e^{iθ_j} S_j + k_j* v, y = Re Σ_j q_j S_j, each head normalised, then gated."""
    n, S, out = len(W_q[0][0]), S0, []
    turns = [mp.expj(mp.power(10000, -mp.mpf(j) / max(1, n - 1))) for j in range(n)]
    for row in u:
        q, k, v, gate = ([_product(row, M) for M in W] for W in (W_q, W_k, W_v, W_gate))
        keys = [[mp.conj(k_j) / mp.sqrt(2 * n) for k_j in k_g] for k_g in k]
        S = [
            [[(1 - mp.mpf(2) ** (-5 - i)) * turn * s + k_j * v_p
              for s, v_p in zip(S_j, v_g, strict=True)]
             for turn, S_j, k_j in zip(turns, S_g, k_g, strict=True)]
            for i, (S_g, k_g, v_g) in enumerate(zip(S, keys, v, strict=True))
        ]  # fmt: skip
        y = [[mp.re(mp.fdot(q_g, column)) for column in zip(*S_g, strict=True)]
             for q_g, S_g in zip(q, S, strict=True)]  # fmt: skip
        gated = [[a * _silu(z) for a, z in zip(_normal(y_g), z_g, strict=True)]
                 for y_g, z_g in zip(y, gate, strict=True)]  # fmt: skip
        out.append(_merged(gated, W_out))
    return out, S


def _normal(x):
    """(x − mean)/√(variance + ε)."""
    mean = mp.fsum(x) / len(x)
    variance = mp.fsum((a - mean) ** 2 for a in x) / len(x)
    return [(a - mean) / mp.sqrt(variance + mp.mpf(1e-5)) for a in x]


def mamba2_layer(u, *parameters):
    """From rest."""
    k_x, k_B, k_C = parameters[5:8]
    rests = (
        [[_zeros(len(k)) for k in head] for head in k_x],
        *([_zeros(len(k)) for k in taps] for taps in (k_B, k_C)),
    )
    S0 = [[_zeros(len(k_B)) for _ in head] for head in k_x]
    return mamba2_layer_stateful(*[u, *parameters, *rests, S0])[0]


def mamba2_layer_stateful(
    u, W_z, W_x, W_B, W_C, W_dt, k_x, k_B, k_C, bias_x, bias_B, bias_C, dt_bias, log_rate, D,
    scale, W_out, s_x0, s_B0, s_C0, S0,
):  # fmt: skip
    """Row by row: filters, S ← e^{Δ A} S + Δ x Bᵀ, the skip, the gate, a norm over all heads."""
    s_x, s_B, s_C, S, out = s_x0, s_B0, s_C0, S0, []
    for row in u:
        z, inner = ([_product(row, M) for M in W] for W in (W_z, W_x))
        s_x = [_pushed(s, a) for s, a in zip(s_x, inner, strict=True)]
        x = [_filtered(*of_head) for of_head in zip(s_x, k_x, bias_x, strict=True)]
        s_B, s_C = _pushed(s_B, _product(row, W_B)), _pushed(s_C, _product(row, W_C))
        B, C = _filtered(s_B, k_B, bias_B), _filtered(s_C, k_C, bias_C)
        steps = [_softplus(a + b) for a, b in zip(_product(row, W_dt), dt_bias, strict=True)]
        S = [
            [[mp.exp(-step * mp.exp(rate)) * s + step * x_p * b
              for s, b in zip(S_p, B, strict=True)] for S_p, x_p in zip(S_g, x_g, strict=True)]
            for S_g, x_g, step, rate in zip(S, x, steps, log_rate, strict=True)
        ]  # fmt: skip
        y = [[(mp.fdot(S_p, C) + d * x_p) * _silu(z_p)
              for S_p, x_p, z_p in zip(S_g, x_g, z_g, strict=True)]
             for S_g, x_g, z_g, d in zip(S, x, z, D, strict=True)]  # fmt: skip
        root = _root_mean_square([a for y_g in y for a in y_g])
        normal = [[a / root * w for a, w in zip(y_g, w_g, strict=True)]
                  for y_g, w_g in zip(y, scale, strict=True)]  # fmt: skip
        out.append(_merged(normal, W_out))
    return out, s_x, s_B, s_C, S


def _pushed(s, inputs):
    """The last inputs of each channel, the newest last."""
    return [[*past[1:], a] for past, a in zip(s, inputs, strict=True)]


def _filtered(s, k, bias):
    """silu(Σ_j k_j u_{i−j} + bias) in each channel."""
    return [_silu(mp.fdot(taps, reversed(past)) + b)
            for past, taps, b in zip(s, k, bias, strict=True)]  # fmt: skip


def _root_mean_square(x):
    return mp.sqrt(mp.fsum(a * a for a in x) / max(1, len(x)) + mp.mpf(1e-5))


def gated_deltanet_layer(u, *parameters):
    """From rest."""
    k_q, k_k, k_v = parameters[3:6]
    rests = [[[_zeros(len(k)) for k in head] for head in taps] for taps in (k_q, k_k, k_v)]
    S0 = [[_zeros(len(values)) for _ in keys] for keys, values in zip(k_k, k_v, strict=True)]
    return gated_deltanet_layer_stateful(*[u, *parameters, *rests, S0])[0]


def gated_deltanet_layer_stateful(
    u, W_q, W_k, W_v, k_q, k_k, k_v, W_a, W_b, dt_bias, log_rate, W_gate, scale, W_out,
    s_q0, s_k0, s_v0, S0,
):  # fmt: skip
    """Row by row: filters, lengths of 1, S ← g S, S ← S + β k (v − Sᵀ k)ᵀ, the norm, the gate."""
    states, S, out = [s_q0, s_k0, s_v0], S0, []
    maps, all_taps = (W_q, W_k, W_v), (k_q, k_k, k_v)
    for row in u:
        inner = [[_product(row, M) for M in W] for W in maps]
        states = [[_pushed(*head) for head in zip(s, x, strict=True)]
                  for s, x in zip(states, inner, strict=True)]  # fmt: skip
        q, k, v = ([_filtered(s_g, k_g, _zeros(len(k_g))) for s_g, k_g in zip(s, taps, strict=True)]
                   for s, taps in zip(states, all_taps, strict=True))  # fmt: skip
        steps = [_softplus(a + b) for a, b in zip(_product(row, W_a), dt_bias, strict=True)]
        gates = [mp.exp(-mp.exp(r) * step) for r, step in zip(log_rate, steps, strict=True)]
        rates = [1 / (1 + mp.exp(-b)) for b in _product(row, W_b)]
        q, k = ([_unit(x) for x in heads] for heads in (q, k))
        S = [_corrected(*of_head) for of_head in zip(S, k, v, gates, rates, strict=True)]
        y = [[mp.fdot(column, q_g) / mp.sqrt(len(q_g)) for column in zip(*S_g, strict=True)]
             for S_g, q_g in zip(S, q, strict=True)]  # fmt: skip
        z = [_product(row, M) for M in W_gate]
        normal = [[a / _root_mean_square(y_g) * w * _silu(b)
                   for a, w, b in zip(y_g, scale, z_g, strict=True)]
                  for y_g, z_g in zip(y, z, strict=True)]  # fmt: skip
        out.append(_merged(normal, W_out))
    return out, *states, S


def _unit(x):
    """x/√(Σ x² + 1e-6)."""
    length = mp.sqrt(mp.fsum(a * a for a in x) + mp.mpf(1e-6))
    return [a / length for a in x]


def _corrected(S, k, v, gate, beta):
    """The state after the delta rule of one head."""
    S = [[gate * s for s in row] for row in S]
    missing = [a - mp.fdot(column, k) for a, column in zip(v, zip(*S, strict=True), strict=True)]
    return [[s + beta * k_n * r for s, r in zip(row, missing, strict=True)]
            for row, k_n in zip(S, k, strict=True)]  # fmt: skip
