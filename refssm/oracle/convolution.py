"""Oracles for refssm.convolution."""

from mpmath import mp


def causal_convolution(u, k):
    """y_i = Σ_{j≤i} k_{i−j} u_j."""
    return [mp.fdot((k[i - j], u[j]) for j in range(i + 1)) for i in range(len(u))]


causal_convolution_direct = causal_convolution


def circular_convolution(u, k):
    """y_i = Σ_j k_{(i−j) mod l} u_j."""
    return [mp.fdot((k[i - j], u[j]) for j in range(len(u))) for i in range(len(u))]


def bidirectional_convolution(u, k, kr):
    """y_i = Σ_{j≤i} k_{i−j} u_j + Σ_{j≥i} k'_{j−i} u_j."""
    future = [mp.fdot((kr[j - i], u[j]) for j in range(i, len(u))) for i in range(len(u))]
    return [past + after for past, after in zip(causal_convolution(u, k), future, strict=True)]


def bidirectional_convolution_shifted(u, k, kr):
    """y_i = Σ_{j≤i} k_{i−j} u_j + Σ_{j>i} k'_{j−i−1} u_j."""
    future = [mp.fdot((kr[j - i - 1], u[j]) for j in range(i + 1, len(u))) for i in range(len(u))]
    return [past + after for past, after in zip(causal_convolution(u, k), future, strict=True)]


def short_convolution(u, k):
    """y_i = Σ_{j<t} k_j u_{i−j}."""
    return [mp.fsum(k_j * u[i - j] for j, k_j in enumerate(k) if j <= i) for i in range(len(u))]


def short_convolution_packed(u, k, resets):
    """The same for each sequence alone."""
    begins = [i for i in range(1, len(u)) if resets[i]]
    pieces = zip([0, *begins], [*begins, len(u)], strict=True)
    return [y for start, end in pieces for y in short_convolution(u[start:end], k)]


def short_convolution_stateful(u, k, s0):
    """The same with s0 before u; and the last t inputs."""
    t, past = len(k), [*s0, *u]
    y = [mp.fsum(k_j * past[t + i - j] for j, k_j in enumerate(k)) for i in range(len(u))]
    return y, past[len(u) :]


def short_convolution_step(u, k, s):
    """The same for one input."""
    (y,), s_next = short_convolution_stateful([u], k, s)
    return y, s_next


def causal_conv1d(u, k, bias):
    """silu(Σ_{j<t} k_j u_{i−j} + bias)."""
    return [_silu(a + bias) for a in short_convolution(u, k)]


def causal_conv1d_packed(u, k, bias, resets):
    """The same for each sequence alone."""
    return [_silu(a + bias) for a in short_convolution_packed(u, k, resets)]


def causal_conv1d_stateful(u, k, bias, s0):
    """The same with s0 before u; and the last t inputs."""
    a, s = short_convolution_stateful(u, k, s0)
    return [_silu(a_i + bias) for a_i in a], s


def causal_conv1d_step(u, k, bias, s):
    """The same for one input."""
    (y,), s_next = causal_conv1d_stateful([u], k, bias, s)
    return y, s_next


def _silu(a):
    return a / (1 + mp.exp(-a))
