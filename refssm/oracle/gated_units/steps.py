"""Oracles for refssm.gated_units: the steps, and their forms."""

# pyright: reportAttributeAccessIssue=false
# (mpmath 1.4 adds log1p on import)

from mpmath import mp

from refssm.oracle.building.recurrence import forms


def rg_lru_step(u, r, i, a_param, x):
    """a x + √(1 − a²) i u, a = (1 + e^{a_param})^{−8 r}."""
    logs = [-8 * r_n * mp.log1p(mp.exp(p)) for r_n, p in zip(r, a_param, strict=True)]
    return [
        mp.exp(log_a) * x_n + mp.sqrt(-mp.expm1(2 * log_a)) * i_n * u_n
        for log_a, x_n, i_n, u_n in zip(logs, x, i, u, strict=True)
    ]


def min_gru_step(k, h, x):
    """(1 − z) x + z g, z = 1/(1 + e^{−k})."""
    return [
        x_n / (1 + mp.exp(k_n)) + _positive(h_n) / (1 + mp.exp(-k_n))
        for k_n, h_n, x_n in zip(k, h, x, strict=True)
    ]


def _positive(h):
    return h + mp.mpf(1) / 2 if h >= 0 else 1 / (1 + mp.exp(-h))


def _unscaled(u, r, i, a_param, x):
    """i u from rest, else as `rg_lru_step`."""
    if x is None:
        return [i_n * u_n for i_n, u_n in zip(i, u, strict=True)]
    return rg_lru_step(u, r, i, a_param, x)


def _forms(step, varying, rest):
    """From rest, from a state, packed, packed from states: the states are the outputs."""
    plain, stateful, packed, packed_stateful, *_ = forms(
        lambda *arguments: 2 * (step(*arguments),), varying, rest
    )
    return (
        plain,
        lambda *arguments: stateful(*arguments)[0],
        packed,
        lambda *arguments: packed_stateful(*arguments)[0],
    )


rg_lru, rg_lru_from, rg_lru_packed, rg_lru_packed_from = _forms(
    rg_lru_step, "1110", lambda u, r, i, a_param: [0] * len(a_param)
)
rg_lru_unscaled_start, _, rg_lru_unscaled_start_packed, _ = _forms(
    _unscaled, "1110", lambda *_: None
)
min_gru, min_gru_from, min_gru_packed, min_gru_packed_from = _forms(
    min_gru_step, "11", lambda k, h: [0] * len(k[0]) if k else []
)
