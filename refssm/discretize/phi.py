"""φ₁, φ₂ and their derivatives for scalars, also where the textbook quotients cancel.

    φ₁(z) = ∫₀¹ e^{rz} dr = (e^z − 1)/z,    φ₂(z) = ∫₀¹ (1 − r) e^{rz} dr = (φ₁(z) − 1)/z

The derivatives of φ₁ are the moments ∫ r^j e^{rz} dr. For |z| < 1: Taylor's series by Horner's
rule.
"""

import numpy as np

TERMS = 25  # the remainder, 1/25! of the sum, is below u of long double


def phi1(z):
    """(e^z − 1)/z, 1 at z = 0."""
    return np.where(z == 0, 1, np.expm1(z) / np.where(z == 0, 1, z))


def moment(j, z):
    """φ₁⁽ʲ⁾(z) = ∫₀¹ r^j e^{rz} dr = Σ_k z^k/(k! (k + j + 1)),  j ≥ 1."""
    near, inner, outer = _split(z)
    one = np.ones((), np.finfo(z.dtype).dtype)
    series = one / (TERMS + j + 1)
    for k in range(TERMS - 1, -1, -1):
        series = one / (k + j + 1) + inner / (k + 1) * series
    quotient = phi1(outer)
    for i in range(1, j + 1):  # integration by parts; for |z| ≥ 1 it loses few digits
        quotient = (np.exp(outer) - i * quotient) / outer
    return np.where(near, series, quotient)


def phi2(z):
    """(φ₁(z) − 1)/z = Σ_k z^k/(k + 2)!."""
    near, inner, outer = _split(z)
    series = 1 + inner / (TERMS + 2)
    for k in range(TERMS - 1, 0, -1):
        series = 1 + inner / (k + 2) * series
    return np.where(near, series / 2, (phi1(outer) - 1) / outer)


def phi2_derivative(z):
    """(φ₁'(z) − φ₂(z))/z = Σ_k (k + 1) z^k/(k + 3)!."""
    near, inner, outer = _split(z)
    series = 1 + inner / (TERMS + 2)
    for k in range(TERMS - 1, 0, -1):
        series = 1 + inner * (k + 1) / (k * (k + 3)) * series
    return np.where(near, series / 6, (moment(1, outer) - phi2(outer)) / outer)


def _split(z):
    """A mask of |z| < 1; z with 0 where the mask is False; z with 1 where it is True."""
    near = np.abs(z) < 1
    return near, np.where(near, z, 0), np.where(near, 1, z)
