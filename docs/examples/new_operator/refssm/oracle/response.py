"""Oracles for refssm.response."""

from mpmath import mp


def impulse_response(v, w, t):
    """y_l = Σ_n v_n e^(w_n t_l)."""
    return [mp.fsum(v_n * mp.exp(w_n * t_l) for v_n, w_n in zip(v, w, strict=True)) for t_l in t]
