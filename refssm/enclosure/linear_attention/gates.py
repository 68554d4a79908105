"""Enclosures for refssm.linear_attention.gates: by logarithms of σ, and by the tangent."""

__all__ = ["gated_delta_gates", "kimi_gates", "kimi_gates_bounded"]


def gated_delta_gates(a, b, A_log, dt_bias):
    """log_g_n = e^{A_log_n} log σ(−a_n − dt_bias_n), beta_n = (1 + tanh(b_n/2))/2."""
    heads = zip(a, A_log, dt_bias, strict=True)
    return [_decay(*head) for head in heads], [_open(b_n) for b_n in b]


def kimi_gates(a, A_log, dt_bias):
    """log_g_n = e^{A_log} log σ(−a_n − dt_bias_n)."""
    return [_decay(a_n, A_log, bias) for a_n, bias in zip(a, dt_bias, strict=True)]


def kimi_gates_bounded(a, A_log, dt_bias, *, c=-5.0):
    """log_g_n = c (1 + tanh(e^{A_log} (a_n + dt_bias_n)/2))/2."""
    slope = A_log.exp()
    return [c * _open(slope * (a_n + bias)) for a_n, bias in zip(a, dt_bias, strict=True)]


def _open(x):
    """σ(x)."""
    return (1 + (x / 2).tanh()) / 2


def _decay(a, A_log, dt_bias):
    """log σ(−v) = −v − log(1 + e^{−v})."""
    v = a + dt_bias
    return -A_log.exp() * (v + (-v).exp().log1p())
