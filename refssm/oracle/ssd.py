"""Oracles for refssm.ssd: one function for every form, and Mamba-2's call around it."""

# pyright: reportAttributeAccessIssue=false
# (mpmath 1.4 adds log1p on import)

from mpmath import mp

from refssm.oracle.building.recurrence import forms


def ssd_step(x, log_a, B, C, S, **_):
    """S ← e^{log_a} S + x Bᵀ, y = S C."""
    a = mp.exp(log_a)
    S = [
        [a * s + x_p * b for s, b in zip(row, B, strict=True)]
        for row, x_p in zip(S, x, strict=True)
    ]
    return [mp.fsum(s * c for s, c in zip(row, C, strict=True)) for row in S], S


def mamba2_step(x, dt, A, B, C, D, z, dt_bias, S, *, dt_min=0, dt_max=mp.inf):
    """S ← e^{Δ A} S + Δ x Bᵀ, y = (S C + D x) z/(1 + e^{−z}); Δ = log(1 + e^{dt + dt_bias}) between
    dt_min and dt_max."""
    step = min(max(mp.log1p(mp.exp(dt + dt_bias)), dt_min), dt_max)
    read, S = ssd_step([step * x_p for x_p in x], step * A, B, C, S)
    rows = zip(read, x, z, strict=True)
    return [(y_p + D * x_p) * z_p / (1 + mp.exp(-z_p)) for y_p, x_p, z_p in rows], S


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


def _rest_of_mamba2(x, dt, A, B, *_):
    return _rest(x, None, B, None)


(
    mamba2_scan,
    mamba2_scan_stateful,
    mamba2_scan_packed,
    mamba2_scan_packed_stateful,
    mamba2_scan_states,
    _,
) = forms(mamba2_step, "11011010", _rest_of_mamba2)
