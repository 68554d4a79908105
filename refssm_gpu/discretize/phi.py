"""φ₁, φ₂ and their derivatives for scalars: refssm.discretize.phi on arrays of any namespace.

Fewer terms than there, for there is no long double on a card. e^z − 1 of complex z is written out:
CuPy's `expm1` is relied on for real numbers only.
"""

from __future__ import annotations

from refssm_gpu._launching.arrays import Array, is_complex, namespace

TERMS = 18  # for |z| < 1 the remainder, 1/18!/19 of the sum, is below u of double precision


def phi1(z: Array) -> Array:
    """(e^z − 1)/z, 1 at z = 0."""
    xp = namespace(z)
    return xp.where(z == 0, 1.0, _expm1(z) / xp.where(z == 0, 1.0, z))


def _expm1(z: Array) -> Array:
    """e^{x+iy} − 1 = (e^x − 1) cos y − 2 sin² y/2 + i e^x sin y."""
    xp = namespace(z)
    if not is_complex(z):
        return xp.expm1(z)
    x, y = xp.real(z), xp.imag(z)
    half = xp.sin(y / 2)
    return xp.expm1(x) * xp.cos(y) - 2 * half * half + 1j * xp.imag(xp.exp(z))


def moment(j: int, z: Array) -> Array:
    """φ₁⁽ʲ⁾(z) = ∫₀¹ r^j e^{rz} dr = Σ_k z^k/(k! (k + j + 1)),  j ≥ 1."""
    xp = namespace(z)
    near, inner, outer = _split(z)
    series = xp.full_like(inner, 1 / (TERMS + j + 1))
    for k in range(TERMS - 1, -1, -1):
        series = 1 / (k + j + 1) + inner / (k + 1) * series
    quotient, power = phi1(outer), xp.exp(outer)
    for i in range(1, j + 1):  # integration by parts; for |z| ≥ 1 it loses few digits
        quotient = (power - i * quotient) / outer
    return xp.where(near, series, quotient)


def phi2(z: Array) -> Array:
    """(φ₁(z) − 1)/z = Σ_k z^k/(k + 2)!."""
    near, inner, outer = _split(z)
    series = 1 + inner / (TERMS + 2)
    for k in range(TERMS - 1, 0, -1):
        series = 1 + inner / (k + 2) * series
    return namespace(z).where(near, series / 2, (phi1(outer) - 1) / outer)


def phi2_derivative(z: Array) -> Array:
    """(φ₁'(z) − φ₂(z))/z = Σ_k (k + 1) z^k/(k + 3)!."""
    near, inner, outer = _split(z)
    series = 1 + inner / (TERMS + 2)
    for k in range(TERMS - 1, 0, -1):
        series = 1 + inner * ((k + 1) / (k * (k + 3))) * series
    return namespace(z).where(near, series / 6, (moment(1, outer) - phi2(outer)) / outer)


def _split(z: Array) -> tuple[Array, Array, Array]:
    """A mask of |z| < 1; z with 0 where the mask is false; z with 1 where it is true."""
    xp = namespace(z)
    near = xp.abs(z) < 1
    return near, xp.where(near, z, 0.0), xp.where(near, 1.0, z)
