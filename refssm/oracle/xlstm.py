"""Oracles for refssm.xlstm: the step, and its forms."""

from mpmath import mp

from refssm.oracle.building.recurrence import forms


def mlstm_step(q, k, v, i, log_f, S, s, m, *, eps=0, **_):
    """S ← e^{log_f} S + e^i k vᵀ, s alike with k, y = Sᵀ q / max(|sᵀ q|, 1), in units of e^m."""
    m_next = max(log_f + m, i)
    f, g = mp.exp(log_f + m - m_next), mp.exp(i - m_next)
    S = [
        [f * x + g * k_n * v_p for x, v_p in zip(row, v, strict=True)]
        for row, k_n in zip(S, k, strict=True)
    ]
    s = [f * x + g * k_n for x, k_n in zip(s, k, strict=True)]
    read = mp.fsum(q_n * s_n for q_n, s_n in zip(q, s, strict=True))
    d = max(abs(read), mp.exp(-m_next)) + eps
    y = [mp.fsum(q_n * row[p] for q_n, row in zip(q, S, strict=True)) / d for p in range(len(v))]
    return y, S, s, m_next


def _rest(q, k, v, *_):
    return [[0] * len(v[0]) for _ in k[0]] if k else [], [0] * len(k[0]) if k else [], mp.mpf(0)


mlstm, mlstm_stateful, mlstm_packed, mlstm_packed_stateful, mlstm_states, _ = forms(
    mlstm_step, "11111", _rest, parts=3
)
(
    mlstm_chunked,
    mlstm_chunked_stateful,
    mlstm_chunked_packed,
    mlstm_chunked_packed_stateful,
    _,
    _,
) = forms(mlstm_step, "11111", _rest, parts=3)
