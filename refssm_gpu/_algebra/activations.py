"""Sigmoid functions and their kin on arrays of any namespace, by e^{−|x|}: nothing overflows."""

from refssm_gpu._launching.arrays import Array, namespace


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
