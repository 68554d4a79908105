"""Oracles for refssm.selective_scan."""

# pyright: reportAttributeAccessIssue=false
# (mpmath 1.4 adds log1p on import)

from mpmath import mp

from refssm.oracle.building.recurrence import forms


def selective_step(u, dt, A, B, C, x):
    """x ← e^{dt A} x + dt u B, y = C · x."""
    x = [mp.exp(dt * w) * s + dt * u * b for w, s, b in zip(A, x, B, strict=True)]
    return mp.fsum(c * s for c, s in zip(C, x, strict=True)), x


def mamba_step(u, dt, A, B, C, D, z, dt_bias, x):
    """The same with the step size log(1 + e^{dt + dt_bias}); y = (C · x + D u) z/(1 + e^{−z})."""
    y, x = selective_step(u, mp.log1p(mp.exp(dt + dt_bias)), A, B, C, x)
    return (y + D * u) * z / (1 + mp.exp(-z)), x


def _rest(u, dt, A, *_):
    return [0] * len(A)


(
    selective_scan,
    selective_scan_stateful,
    selective_scan_packed,
    selective_scan_packed_stateful,
    selective_scan_states,
    selective_scan_reversed,
) = forms(selective_step, "11011", _rest)
(
    mamba_scan,
    mamba_scan_stateful,
    mamba_scan_packed,
    mamba_scan_packed_stateful,
    mamba_scan_states,
    mamba_scan_reversed,
) = forms(mamba_step, "11011010", _rest)
