"""Enclosures for refssm.linear_attention.delta_dplr: a query goes back through the steps.

    y_i = Σ_{j≤i} (w_j · k_j) v_j + S0ᵀ w_{−1},
    w_i = q_i,  w_{j−1} = e^{log_g_j} ∘ w_j + (w_j · b_j) a_j

The last state is what unit queries read from it.
"""

from refssm.enclosure.recurrence import forms


def _dot(x, y):
    return sum((x_n * y_n for x_n, y_n in zip(x, y, strict=True)), 0)


def _read(w, i, arguments, S0, resets):
    """Sᵀ w after step i."""
    k, v, log_g, a, b = arguments
    y = [0] * (len(v[0]) if v else len(S0[0]) if S0 else 0)
    for j in range(i, -1, -1):
        weight, moved = _dot(w, k[j]), _dot(w, b[j])
        y = [s + weight * v_p for s, v_p in zip(y, v[j], strict=True)]
        if resets[j]:
            return y
        w = [g.exp() * w_n + moved * a_n for g, w_n, a_n in zip(log_g[j], w, a[j], strict=True)]
    return [s + _dot(w, [row[p] for row in S0]) for p, s in enumerate(y)]


def _sums(arguments, S0, resets, **_):
    """The outputs and the last state."""
    q, *others = arguments
    y = [_read(q_i, i, others, S0, resets) for i, q_i in enumerate(q)]
    units = [[int(i == n) for i in range(len(S0))] for n in range(len(S0))]
    return y, [_read(unit, len(q) - 1, others, S0, resets) for unit in units]


def _rest(q, k, v, *_):
    return [[0] * len(v[0]) for _ in k[0]] if k else []


(
    delta_dplr,
    delta_dplr_stateful,
    delta_dplr_packed,
    delta_dplr_packed_stateful,
    delta_dplr_states,
    _,
    delta_dplr_step,
) = forms(_sums, "111111", _rest)
(
    delta_dplr_chunked,
    delta_dplr_chunked_stateful,
    delta_dplr_chunked_packed,
    delta_dplr_chunked_packed_stateful,
    _,
    _,
    _,
) = forms(_sums, "111111", _rest)
