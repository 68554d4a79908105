"""Oracles for refssm.linear_attention.gates."""

# pyright: reportAttributeAccessIssue=false
# (mpmath 1.4 adds log1p on import)

from mpmath import mp

__all__ = ["gated_delta_gates", "kimi_gates", "kimi_gates_bounded"]


def gated_delta_gates(a, b, A_log, dt_bias):
    """log_g_n = −e^{A_log_n} log(1 + e^{a_n + dt_bias_n}), beta_n = 1/(1 + e^{−b_n})."""
    heads = zip(a, A_log, dt_bias, strict=True)
    return [_decay(*head) for head in heads], [1 / (1 + mp.exp(-b_n)) for b_n in b]


def kimi_gates(a, A_log, dt_bias):
    """log_g_n = −e^{A_log} log(1 + e^{a_n + dt_bias_n})."""
    return [_decay(a_n, A_log, bias) for a_n, bias in zip(a, dt_bias, strict=True)]


def kimi_gates_bounded(a, A_log, dt_bias, *, c=-5.0):
    """log_g_n = c/(1 + e^{−e^{A_log} (a_n + dt_bias_n)})."""
    slope = mp.exp(A_log)
    return [c / (1 + mp.exp(-slope * (a_n + bias))) for a_n, bias in zip(a, dt_bias, strict=True)]


def _decay(a, A_log, dt_bias):
    return -mp.exp(A_log) * mp.log1p(mp.exp(a + dt_bias))
