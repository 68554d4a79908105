"""Oracles for refssm.linear_attention.delta_dplr: the step, and its forms."""

from mpmath import mp

from refssm.oracle.building.recurrence import forms


def delta_dplr_step(q, k, v, log_g, a, b, S, **_):
    """S ← diag(e^{log_g}) S + b (aᵀ S) + k vᵀ, y = Sᵀ q."""
    z = _recalled(S, a, v)
    S = [
        [mp.exp(g) * s + b_n * z_p + k_n * v_p for s, z_p, v_p in zip(row, z, v, strict=True)]
        for row, k_n, g, b_n in zip(S, k, log_g, b, strict=True)
    ]
    return _recalled(S, q, v), S


def _recalled(S, q, v):
    """Sᵀ q."""
    return [mp.fsum(q_n * row[p] for q_n, row in zip(q, S, strict=True)) for p in range(len(v))]


def _rest(q, k, v, *_):
    return [[0] * len(v[0]) for _ in k[0]] if k else []


(
    delta_dplr,
    delta_dplr_stateful,
    delta_dplr_packed,
    delta_dplr_packed_stateful,
    delta_dplr_states,
    _,
) = forms(delta_dplr_step, "111111", _rest)
(
    delta_dplr_chunked,
    delta_dplr_chunked_stateful,
    delta_dplr_chunked_packed,
    delta_dplr_chunked_packed_stateful,
    _,
    _,
) = forms(delta_dplr_step, "111111", _rest)
