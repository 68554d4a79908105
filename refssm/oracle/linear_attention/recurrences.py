"""Oracles for refssm.linear_attention: the steps, and their forms."""

from mpmath import mp

from refssm.oracle.building.recurrence import forms


def gated_linear_step(q, k, v, log_g, S, **_):
    """S ← diag(e^{log_g}) S + k vᵀ, y = Sᵀ q."""
    S = [
        [mp.exp(g) * s + k_n * v_p for s, v_p in zip(row, v, strict=True)]
        for row, k_n, g in zip(S, k, log_g, strict=True)
    ]
    return _recalled(S, q, v), S


def delta_step(q, k, v, beta, S, **_):
    """S ← S + β k (v − Sᵀ k)ᵀ, y = Sᵀ q."""
    missing = [v_p - s for v_p, s in zip(v, _recalled(S, k, v), strict=True)]
    S = [
        [s + beta * k_n * r for s, r in zip(row, missing, strict=True)]
        for row, k_n in zip(S, k, strict=True)
    ]
    return _recalled(S, q, v), S


def gated_delta_step(q, k, v, log_g, beta, S, **_):
    """S ← e^{log_g} S, then the delta rule."""
    return delta_step(q, k, v, beta, [[mp.exp(log_g) * s for s in row] for row in S])


def kimi_delta_step(q, k, v, log_g, beta, S, **_):
    """S ← diag(e^{log_g}) S, then the delta rule."""
    decayed = [[mp.exp(g) * s for s in row] for row, g in zip(S, log_g, strict=True)]
    return delta_step(q, k, v, beta, decayed)


def rwkv6_step(r, k, v, log_w, u, S, **_):
    """y = (S + diag(u) k vᵀ)ᵀ r, S ← diag(e^{log_w}) S + k vᵀ."""
    seen = [
        [s + u_n * k_n * v_p for s, v_p in zip(row, v, strict=True)]
        for row, k_n, u_n in zip(S, k, u, strict=True)
    ]
    _, S = gated_linear_step(r, k, v, log_w, S)
    return _recalled(seen, r, v), S


def _recalled(S, q, v):
    """Sᵀ q."""
    return [mp.fsum(q_n * row[p] for q_n, row in zip(q, S, strict=True)) for p in range(len(v))]


def _rest(q, k, v, *_):
    return [[0] * len(v[0]) for _ in k[0]] if k else []


(
    gated_linear_recurrence,
    gated_linear_recurrence_stateful,
    gated_linear_recurrence_packed,
    gated_linear_recurrence_packed_stateful,
    gated_linear_recurrence_states,
    _,
) = forms(gated_linear_step, "1111", _rest)
(
    rwkv6,
    rwkv6_stateful,
    rwkv6_packed,
    rwkv6_packed_stateful,
    rwkv6_states,
    _,
) = forms(rwkv6_step, "11110", _rest)
(
    delta_rule,
    delta_rule_stateful,
    delta_rule_packed,
    delta_rule_packed_stateful,
    delta_rule_states,
    _,
) = forms(delta_step, "1111", _rest)
(
    gated_delta_rule,
    gated_delta_rule_stateful,
    gated_delta_rule_packed,
    gated_delta_rule_packed_stateful,
    gated_delta_rule_states,
    _,
) = forms(gated_delta_step, "11111", _rest)
(
    kimi_delta_rule,
    kimi_delta_rule_stateful,
    kimi_delta_rule_packed,
    kimi_delta_rule_packed_stateful,
    kimi_delta_rule_states,
    _,
) = forms(kimi_delta_step, "11111", _rest)
(
    gated_linear_recurrence_chunked,
    gated_linear_recurrence_chunked_stateful,
    gated_linear_recurrence_chunked_packed,
    gated_linear_recurrence_chunked_packed_stateful,
    _,
    _,
) = forms(gated_linear_step, "1111", _rest)
(
    rwkv6_chunked,
    rwkv6_chunked_stateful,
    rwkv6_chunked_packed,
    rwkv6_chunked_packed_stateful,
    _,
    _,
) = forms(rwkv6_step, "11110", _rest)
(
    delta_rule_chunked,
    delta_rule_chunked_stateful,
    delta_rule_chunked_packed,
    delta_rule_chunked_packed_stateful,
    _,
    _,
) = forms(delta_step, "1111", _rest)
(
    gated_delta_rule_chunked,
    gated_delta_rule_chunked_stateful,
    gated_delta_rule_chunked_packed,
    gated_delta_rule_chunked_packed_stateful,
    _,
    _,
) = forms(gated_delta_step, "11111", _rest)
(
    kimi_delta_rule_chunked,
    kimi_delta_rule_chunked_stateful,
    kimi_delta_rule_chunked_packed,
    kimi_delta_rule_chunked_packed_stateful,
    _,
    _,
) = forms(kimi_delta_step, "11111", _rest)
