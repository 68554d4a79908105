"""Enclosures for refssm.linear_attention: a query goes back through the steps.

    y_i = Σ_{j≤i} (w_j · b_j) v_j + S0ᵀ w_{−1},
    w_i = q_i,  w_{j−1} = a_j ∘ (w_j − β_j (w_j · k_j) k_j)

with b = β k, or b = k without a delta rule. The last state is what unit queries read from it.
"""

from refssm.enclosure.algebra import dot
from refssm.enclosure.recurrence import forms


def _sums(k, v, log_g, beta, S0, resets, read):
    """Sᵀ q after some steps, for `read` = (q, index of the last step)."""
    w, i = read
    y = [0] * (len(v[0]) if v else len(S0[0]))
    for j in range(i, -1, -1):
        along = dot(w, k[j])
        weight = along if beta is None else along * beta[j]
        y = [s + weight * v_p for s, v_p in zip(y, v[j], strict=True)]
        if resets[j]:
            return y
        if beta is not None:
            w = [w_n - weight * k_n for w_n, k_n in zip(w, k[j], strict=True)]
        w = [w_n * a for w_n, a in zip(w, _gates(log_g, j, len(w)), strict=True)]
    return [s + sum(w_n * row[p] for w_n, row in zip(w, S0, strict=True)) for p, s in enumerate(y)]


def _gates(log_g, j, n):
    """e^{log_g} of one step for each key."""
    if log_g is None:
        return [1] * n
    return [g.exp() for g in log_g[j]] if isinstance(log_g[j], list) else [log_g[j].exp()] * n


def _recurrence(names):
    """The outputs and the last state of the recurrence with these arguments after q, k, v."""

    def sums(arguments, S0, resets):
        q, k, v, *gates = arguments
        told = dict(zip(names, gates, strict=True))
        given = k, v, told.get("log_g"), told.get("beta"), S0, resets
        y = [_sums(*given, (q_i, i)) for i, q_i in enumerate(q)]
        units = [[int(i == n) for i in range(len(S0))] for n in range(len(S0))]
        return y, [_sums(*given, (unit, len(q) - 1)) for unit in units]

    return sums


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
