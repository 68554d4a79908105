"""Enclosures for refssm.xlstm: sums over the past, with all weights of a step at once.

    y_t = Σ_j w_tj (q_t·k_j) v_j / max(|Σ_j w_tj q_t·k_j|, e^{−m_t}),
    w_tj = e^{F_t − F_j + i_j − m_t},
    F_t = Σ_{j≤t} log_f_j,  m_t = max(F_t + m_0, F_t − F_j + i_j over j ≤ t)

The state before the first step is one more term, of weight e^{F_t + m_0 − m_t}.
"""

from flint import arb

from refssm.enclosure.recurrence import forms


def _sums(arguments, state, resets, *, eps=0, **_):
    """The outputs, and the last state."""
    q, k, v, i, log_f = arguments
    last, y = state, []
    for t in range(len(q)):
        last = _state(k[: t + 1], v, i, log_f, state, resets[: t + 1])
        S, s, m = last
        read = _dot(q[t], s)
        d = abs(read).max((-arb(m)).exp()) + eps
        y.append([_dot(q[t], [row[p] for row in S]) / d for p in range(len(v[0]))])
    return y, last


def _state(k, v, i, log_f, state, resets):
    """The state after the steps of k, each with its own weight."""
    S, s, m0 = state
    logs, past = [], arb(0)
    for j in range(len(k) - 1, -1, -1):
        logs.append((j, past + i[j]))
        past = past + log_f[j]
        if resets[j]:
            S, s, m0 = [[0] * len(row) for row in S], [0] * len(s), arb(0)
            break
    m = past + m0
    for _, x in logs:
        m = m.max(x)
    first = (past + m0 - m).exp()
    weights = [(j, (x - m).exp()) for j, x in logs]
    S = [
        [first * x + _sum(w * k[j][n] * v[j][p] for j, w in weights) for p, x in enumerate(row)]
        for n, row in enumerate(S)
    ]
    return S, [first * x + _sum(w * k[j][n] for j, w in weights) for n, x in enumerate(s)], m


def _dot(a, b):
    return _sum(x * y for x, y in zip(a, b, strict=True))


def _sum(terms):
    return sum(terms, arb(0))


def _rest(q, k, v, *_):
    return [[0] * len(v[0]) for _ in k[0]] if k else [], [0] * len(k[0]) if k else [], arb(0)


mlstm, mlstm_stateful, mlstm_packed, mlstm_packed_stateful, mlstm_states, _, mlstm_step = forms(
    _sums, "11111", _rest, parts=3
)
(
    mlstm_chunked,
    mlstm_chunked_stateful,
    mlstm_chunked_packed,
    mlstm_chunked_packed_stateful,
    _,
    _,
    _,
) = forms(_sums, "11111", _rest, parts=3)
