"""Sigmoid functions and their kin on arrays of any namespace, by e^{−|x|}: nothing overflows.

And GELU for layers, whose error function no array standard has.
"""

from math import pi, sqrt

from refssm_gpu._launching.arrays import Array, namespace
from refssm_gpu._launching.kernel import on_host


def sigmoid(x: Array) -> Array:
    """1/(1 + e^{−x})."""
    xp = namespace(x)
    e = xp.exp(-xp.abs(x))
    return xp.where(x >= 0, xp.ones_like(e), e) / (1 + e)


def softplus(x: Array) -> Array:
    """log(1 + e^x) = max(x, 0) + log(1 + e^{−|x|}); NaN stays, and so does infinity."""
    xp = namespace(x)
    return xp.where(x < 0, xp.zeros_like(x), x) + xp.log1p(xp.exp(-xp.abs(x)))


def silu(z: Array) -> Array:
    """z σ(z)."""
    return z * sigmoid(z)


def silu_slope(z: Array) -> Array:
    """The derivative of z σ(z): σ(z) (1 + z σ(−z))."""
    return sigmoid(z) * (1 + z * sigmoid(-z))


def gelu(x: Array) -> Array:
    """x Φ(x), with Φ the distribution function of the normal distribution."""
    return x * _below(x)


def gelu_vjp(dy: Array, x: Array) -> Array:
    """dy (Φ(x) + x φ(x)), φ(x) = e^{−x²/2}/√(2π)."""
    kind = x.dtype.type
    density = namespace(x).exp(-kind(0.5) * x * x) * kind(1 / sqrt(2 * pi))
    return dy * (_below(x) + x * density)


def _below(x: Array) -> Array:
    """Φ(x)."""
    kind = x.dtype.type
    return kind(0.5) * (1 + _erf(x * kind(sqrt(0.5))))


def _erf(x: Array) -> Array:
    if on_host():
        from scipy.special import erf
    else:
        from cupyx.scipy.special import erf  # pyright: ignore[reportMissingImports]
    return erf(x)
