"""The error function of layers on the card: NumPy's protocols bring all else to CuPy unchanged."""

from math import pi, sqrt

from refssm_gpu._launching.arrays import Array, namespace
from refssm_gpu._launching.kernel import on_host


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
