"""The normal distribution in compiled code that vectorizes: Φ(x), its density φ(x), and x Φ(x).

    Φ(−z) = φ(z) m(z),   φ(z) = e^(−z²/2)/√(2π),   m(z) = Φ(−z)/φ(z): Mills' ratio, z ≥ 0

m is 2c/(z + c) times a polynomial in s = (z − c)/(z + c), which is between −1 and 1. One
exponential gives Φ and φ. z²/2 is rounded before the exponential, so Φ(−z) has z² roundings.
"""

from refssm.jit._vectors.exponential import _polynomial, exponential
from refssm.jit._vectors.formula import elementwise

CENTRE = 4.0
FAR = 1e3  # Φ(−z) is 0 there
ROOT = 0.3989422804014327  # 1/√(2π)


def _both(x):
    """Φ(x) and φ(x)."""
    z = x.where("<", 0, -x, x)
    z = z.where(">", FAR, FAR, z)  # ∞ − ∞ would follow; NaN stays
    density = ROOT * exponential(-0.5 * z * z)
    inverse = 1 / (z + CENTRE)
    ratio = 2 * CENTRE * inverse * _polynomial((z - CENTRE) * inverse, x.number.mills)
    tail = density * ratio
    return x.where("<", 0, tail, 1 - tail), density


@elementwise
def gelu(x):
    """x Φ(x)."""
    below, _ = _both(x)
    return x * below


@elementwise
def gelu_slope(x):
    """Φ(x) + x φ(x)."""
    below, density = _both(x)
    return x.times_plus(density, below)
