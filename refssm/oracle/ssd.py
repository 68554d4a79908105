"""Oracles for refssm.ssd: one function for every form."""

from mpmath import mp

from refssm.oracle.recurrence import forms


def ssd_step(x, log_a, B, C, S):
    """S ← e^{log_a} S + x Bᵀ, y = S C."""
    a = mp.exp(log_a)
    S = [
        [a * s + x_p * b for s, b in zip(row, B, strict=True)]
        for row, x_p in zip(S, x, strict=True)
    ]
    return [mp.fsum(s * c for s, c in zip(row, C, strict=True)) for row in S], S


def ssd_quadratic(x, log_a, B, C):
    """y_i = Σ_{j≤i} e^{log_a_{j+1} + … + log_a_i} (C_i · B_j) x_j."""
    decays, y = [mp.exp(a) for a in log_a], []
    for i, C_i in enumerate(C):
        row, weight = [mp.mpf(0)] * len(x[0]), mp.mpf(1)
        for j in range(i, -1, -1):  # a sum of logarithms for each pair would take l³ additions
            pair = weight * mp.fdot(C_i, B[j])
            row = [r + pair * x_p for r, x_p in zip(row, x[j], strict=True)]
            weight *= decays[j]
        y.append(row)
    return y


def _rest(x, log_a, B, C):
    return [[0] * len(B[0]) for _ in x[0]] if x else []


(
    ssd_recurrent,
    ssd_recurrent_stateful,
    ssd_recurrent_packed,
    ssd_recurrent_packed_stateful,
    ssd_recurrent_states,
    ssd_recurrent_reversed,
) = forms(ssd_step, "1111", _rest)
(
    ssd_chunked,
    ssd_chunked_stateful,
    ssd_chunked_packed,
    ssd_chunked_packed_stateful,
    ssd_chunked_states,
    _,
) = forms(ssd_step, "1111", _rest)
