"""Oracles of layers of heads with queries, keys and values, step by step.

Every matrix is (g, h, n): a list of g matrices for rows.
"""

# pyright: reportAttributeAccessIssue=false
# (mpmath adds its functions to the context on import)

from mpmath import mp

from refssm.oracle.layers.systems import _product, _silu, _zeros


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
