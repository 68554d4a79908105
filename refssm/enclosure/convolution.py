"""Enclosures for refssm.convolution, as coefficients of products of polynomials."""

from flint import acb

from refssm.enclosure.algebra import product


def causal_convolution(u, k):
    """u(x) k(x) modulo x^l."""
    return product(u, k, len(u))


causal_convolution_direct = causal_convolution


def circular_convolution(u, k):
    """u(x) k(x) modulo x^l − 1."""
    l = len(u)
    y = product(u, k, 2 * l)
    return [y[i] + y[i + l] for i in range(l)]


def bidirectional_convolution(u, k, kr):
    """u(x) k(x), plus the same for kr with u in reverse time."""
    after = product(u[::-1], kr, len(u))[::-1]
    return [s + t for s, t in zip(after, product(u, k, len(u)), strict=True)]


def bidirectional_convolution_shifted(u, k, kr):
    """The same, with x kr(x) for kr(x)."""
    return bidirectional_convolution(u, k, [0, *kr][: len(u)])


def short_convolution(u, k):
    """u(x) k(x) modulo x^l."""
    return product(u, k, len(u))


def short_convolution_packed(u, k, resets):
    """Σ_j k_j u_{i−j}, up to the lag where the sequence begins."""
    y, first = [], 0
    for i in range(len(u)):
        first = i if resets[i] else first
        lags = range(min(len(k), i - first + 1))
        y.append(sum((k[j] * u[i - j] for j in lags), 0 * u[i]))
    return y


def short_convolution_stateful(u, k, s0):
    """(s0(x) + x^t u(x)) k(x), coefficients from x^t on; and the last t inputs."""
    t, both = len(k), [*s0, *u]
    return product(both, k, t + len(u))[t:], both[len(both) - t :]


def short_convolution_step(u, k, s):
    """k_0 u + Σ_{j>0} k_j s_{t−j}; and s without its first entry, plus u."""
    past = list(reversed(s))
    if not k:
        return 0 * u, []
    return sum((k_j * x for k_j, x in zip(k[1:], past, strict=False)), k[0] * u), [*s[1:], u]


def causal_conv1d(u, k, bias):
    """silu of the coefficients of u(x) k(x) + bias/(1 − x)."""
    return _activated(short_convolution(u, k), bias)


def causal_conv1d_packed(u, k, bias, resets):
    """The same, up to the lag where the sequence begins."""
    return _activated(short_convolution_packed(u, k, resets), bias)


def causal_conv1d_stateful(u, k, bias, s0):
    """The same after s0; and the last t inputs."""
    y, s = short_convolution_stateful(u, k, s0)
    return _activated(y, bias), s


def causal_conv1d_step(u, k, bias, s):
    """The same for one input."""
    y, s = short_convolution_step(u, k, s)
    return _activated([y], bias)[0], s


def _activated(sums, bias):
    """a (1 + tanh a/2)/2 for a = Σ + bias."""
    each = [acb(a + bias) for a in sums]
    return [a * (1 + (a / 2).tanh()) / 2 for a in each]
