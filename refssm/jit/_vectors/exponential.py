"""Exponentials and the normal distribution for compiled code that vectorize.

Numba has no vectorized ones without SVML.

    e^x = 2^k e^r,  k = round(x / log 2),  r = x − k log 2

x / log 2 + M rounds to a whole number in its last bits, M = 1.5 · 2^digits, and subtracting M gives
k. A compiler that may reorder sums (`reassoc`) cancels M and returns wrong values without a word:
no flag of `fastmath` may be set here. k is read from the bits, since converting NaN is undefined.
2^k is two factors, because it may be smaller or larger than any number whose product is needed.

Each function takes and returns numbers or lanes of float32 or float64, in compiled code.

The normal distribution: Φ(x), its density φ(x), and x Φ(x).

    Φ(−z) = φ(z) m(z),   φ(z) = e^(−z²/2)/√(2π),   m(z) = Φ(−z)/φ(z): Mills' ratio, z ≥ 0

m is 2c/(z + c) times a polynomial in s = (z − c)/(z + c), which is between −1 and 1. One
exponential gives Φ and φ. z²/2 is rounded before the exponential, so Φ(−z) has z² roundings.
"""

from refssm.jit._vectors.formula import elementwise

LOG2_E = 1.4426950408889634


def _polynomial(x, coefficients):
    """Σ_j c_j x^j."""
    total = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = x.times_plus(total, c)
    return total


def _times_power(p, rounded):
    """p · 2^k for `rounded` = k + M: two factors, the second rounds once."""
    number = p.number
    k = rounded.bits() - number.rounder_bits
    half = k >> 1
    for part in (half, k - half):
        p = p * ((part + number.bias) << number.fraction).floating()
    return p


def exponential(x):
    """e^x within one unit in the last place, subnormal results too; e^−∞ = 0."""
    number = x.number
    # comparisons with NaN are false: NaN stays
    x = x.where("<", number.lowest, number.lowest, x)
    x = x.where(">", number.highest, number.highest, x)
    rounded = x.times_plus(LOG2_E, number.rounder)
    k = rounded - number.rounder
    first, rest = number.ln2
    r = k.times_plus(-rest, k.times_plus(-first, x))
    return _times_power(1 + (r * r).times_plus(_polynomial(r, number.exp), r), rounded)


def _log1p(e):
    """log(1 + e) = 2 artanh(s) for 0 ≤ e ≤ 1, with 2s = e/(1 + e/2)."""
    twice = e / e.times_plus(0.5, 1)  # not e/(2 + e): half of the smallest number is 0
    square = twice * twice
    return (twice * square).times_plus(_polynomial(square, e.number.log1p), twice)


def _halves(v):
    """1 and e^−|v|, the larger one first if v ≥ 0: σ(v) and σ(−v) times 1 + e^−|v|."""
    e = exponential(v.where("<", 0, v, -v))
    return v.where(">=", 0, 1, e), v.where(">=", 0, e, 1), 1 + e


@elementwise
def exp(x):
    """e^x within one unit in the last place."""
    return exponential(x)


@elementwise
def softplus(v):
    """log(1 + e^v) = max(v, 0) + log1p(e^−|v|)."""
    return v.where(">", 0, v, 0) + _log1p(exponential(v.where("<", 0, v, -v)))


@elementwise
def complement(v):
    """1 − e^v for v ≤ 0, with all its digits where v is near 0."""
    near = v.where("<", -0.25, -0.25, v)  # there e^v = 1 + v + v² p(v)
    near = -(near * near).times_plus(_polynomial(near, v.number.exp), near)
    return v.where(">", -0.25, near, 1 - exponential(v))


@elementwise
def sigmoid(v):
    """1/(1 + e^−v), computed from e^−|v|."""
    open_, _, both = _halves(v)
    return open_ / both


@elementwise
def silu(z):
    """z σ(z)."""
    open_, _, both = _halves(z)
    return z * (open_ / both)


@elementwise
def silu_slope(z):
    """The derivative of z σ(z): σ(z) (1 + z σ(−z))."""
    open_, shut, both = _halves(z)
    return (open_ / both) * (1 + z * (shut / both))


def _power(step, rate):
    """step · rate = k + r: 2^r, and k + M. The product itself is not rounded."""
    number = step.number
    rounded = step.times_plus(rate, number.rounder)
    r = step.times_plus(rate, number.rounder - rounded)
    return r.times_plus(_polynomial(r, number.exp2), 1), rounded


@elementwise
def decay(step, rate):
    """2^(step · rate)."""
    number, exponent = step.number, step * rate
    power = _times_power(*_power(step, rate))
    # at infinity r is NaN
    power = exponent.where("<", LOG2_E * number.lowest, 0, power)
    return exponent.where(">", LOG2_E * number.highest, float("inf"), power)


@elementwise
def bounded_decay(step, rate):
    """`decay`, bit for bit, where |step · rate| ≤ `exponent_bound`: k is added to the exponent."""
    power, rounded = _power(step, rate)
    # k + M, shifted: M has zeros in the last bits that stay
    return (power.bits() + (rounded.bits() << step.number.fraction)).floating()


@elementwise
def exponent_bound(x):
    """How large |step · rate| may be in `bounded_decay`, for numbers of x's type: no subnormal
    number, and none infinite."""
    return 0 * x + (x.number.bias - 2)


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
