"""Enclosures for refssm.linear_attention: a query goes back through the steps.

    y_i = Σ_{j≤i} (w_j · b_j) v_j + S0ᵀ w_{−1},
    w_i = q_i,  w_{j−1} = a_j ∘ (w_j − β_j (w_j · k_j) k_j)

with b = β k, or b = k without a delta rule. The last state is what unit queries read from it.
RWKV-6 reads before step i, and has Σ_n r_n u_n k_n times v_i besides.
"""

from refssm.enclosure.recurrence import forms


def _read(w, i, k, v, gates, beta, S0, resets):
    """Sᵀ w after step i."""
    y = [0] * (len(v[0]) if v else len(S0[0]) if S0 else 0)
    for j in range(i, -1, -1):
        weight = sum((w_n * k_n for w_n, k_n in zip(w, k[j], strict=True)), 0) * beta[j]
        y = [s + weight * v_p for s, v_p in zip(y, v[j], strict=True)]
        if resets[j]:
            return y
        w = [a * (w_n - c * k_n) for w_n, k_n, a, c in _corrected(w, k[j], gates[j], weight)]
    return [s + sum(w_n * row[p] for w_n, row in zip(w, S0, strict=True)) for p, s in enumerate(y)]


def _corrected(w, k, gates, weight):
    """Entries of w and k with their gates, and what the delta rule takes away."""
    gates, taken = gates
    return ((w_n, k_n, a, weight * taken) for w_n, k_n, a in zip(w, k, gates, strict=True))


def _recurrence(names):
    """The outputs and the last state of the recurrence with these arguments after q, k, v."""

    def sums(arguments, S0, resets, **_):
        q, k, v, *rest = arguments
        told = dict(zip(names, rest, strict=True))
        log_g = told.get("log_g", [0] * len(q))
        beta = told.get("beta", [1] * len(q))
        gates = [(_gates(g, len(S0)), int("beta" in told)) for g in log_g]
        given = k, v, gates, beta, S0, resets
        y = [_read(q_i, i, *given) for i, q_i in enumerate(q)]
        units = [[int(i == n) for i in range(len(S0))] for n in range(len(S0))]
        return y, [_read(unit, len(q) - 1, *given) for unit in units]

    return sums


def _reading_first(arguments, S0, resets, **_):
    """The outputs and the last state of RWKV-6: r_i goes back through the steps before i."""
    r, k, v, log_w, u = arguments
    gates = [(_gates(g, len(S0)), 0) for g in log_w]
    given = k, v, gates, [1] * len(r), S0, resets
    y = []
    for i, r_i in enumerate(r):
        own = sum((x * b * k_n for x, b, k_n in zip(r_i, u, k[i], strict=True)), 0)
        past = [0] * len(v[i]) if resets[i] else _read(r_i, i - 1, *given)
        y.append([s + own * v_p for s, v_p in zip(past, v[i], strict=True)])
    units = [[int(i == n) for i in range(len(S0))] for n in range(len(S0))]
    return y, [_read(unit, len(r) - 1, *given) for unit in units]


def _gates(g, n):
    """e^g for each key."""
    if isinstance(g, list):
        return [x.exp() for x in g]
    return [1 if isinstance(g, int) else g.exp()] * n


def _rest(q, k, v, *_):
    return [[0] * len(v[0]) for _ in k[0]] if k else []


(
    gated_linear_recurrence,
    gated_linear_recurrence_stateful,
    gated_linear_recurrence_packed,
    gated_linear_recurrence_packed_stateful,
    gated_linear_recurrence_states,
    _,
    gated_linear_step,
) = forms(_recurrence(["log_g"]), "1111", _rest)
(
    rwkv6,
    rwkv6_stateful,
    rwkv6_packed,
    rwkv6_packed_stateful,
    rwkv6_states,
    _,
    rwkv6_step,
) = forms(_reading_first, "11110", _rest)
(
    delta_rule,
    delta_rule_stateful,
    delta_rule_packed,
    delta_rule_packed_stateful,
    delta_rule_states,
    _,
    delta_step,
) = forms(_recurrence(["beta"]), "1111", _rest)
(
    gated_delta_rule,
    gated_delta_rule_stateful,
    gated_delta_rule_packed,
    gated_delta_rule_packed_stateful,
    gated_delta_rule_states,
    _,
    gated_delta_step,
) = forms(_recurrence(["log_g", "beta"]), "11111", _rest)
(
    kimi_delta_rule,
    kimi_delta_rule_stateful,
    kimi_delta_rule_packed,
    kimi_delta_rule_packed_stateful,
    kimi_delta_rule_states,
    _,
    kimi_delta_step,
) = forms(_recurrence(["log_g", "beta"]), "11111", _rest)
(
    gated_linear_recurrence_chunked,
    gated_linear_recurrence_chunked_stateful,
    gated_linear_recurrence_chunked_packed,
    gated_linear_recurrence_chunked_packed_stateful,
    _,
    _,
    _,
) = forms(_recurrence(["log_g"]), "1111", _rest)
(
    rwkv6_chunked,
    rwkv6_chunked_stateful,
    rwkv6_chunked_packed,
    rwkv6_chunked_packed_stateful,
    _,
    _,
    _,
) = forms(_reading_first, "11110", _rest)
(
    delta_rule_chunked,
    delta_rule_chunked_stateful,
    delta_rule_chunked_packed,
    delta_rule_chunked_packed_stateful,
    _,
    _,
    _,
) = forms(_recurrence(["beta"]), "1111", _rest)
(
    gated_delta_rule_chunked,
    gated_delta_rule_chunked_stateful,
    gated_delta_rule_chunked_packed,
    gated_delta_rule_chunked_packed_stateful,
    _,
    _,
    _,
) = forms(_recurrence(["log_g", "beta"]), "11111", _rest)
(
    kimi_delta_rule_chunked,
    kimi_delta_rule_chunked_stateful,
    kimi_delta_rule_chunked_packed,
    kimi_delta_rule_chunked_packed_stateful,
    _,
    _,
    _,
) = forms(_recurrence(["log_g", "beta"]), "11111", _rest)
