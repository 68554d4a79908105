"""SiLU and its slope on arrays of any namespace."""

from refssm_gpu._launching.arrays import Array, namespace


def silu(z: Array) -> Array:
    """z σ(z)."""
    return z * _sigmoid(z)


def silu_slope(z: Array) -> Array:
    """The derivative of z σ(z): σ(z) (1 + z σ(−z))."""
    return _sigmoid(z) * (1 + z * _sigmoid(-z))


def _sigmoid(z: Array) -> Array:
    """1/(1 + e^{−z}), computed from e^{−|z|}."""
    xp = namespace(z)
    e = xp.exp(-xp.abs(z))
    return xp.where(z >= 0, xp.ones_like(e), e) / (1 + e)
