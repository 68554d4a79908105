from math import log

import numpy as np
import pytest
from mpmath import mp
from numba import njit

from refssm.jit._vectors import exponential, formula
from refssm.jit._vectors.formula import elementwise

PRECISION = 40
TYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])
EXACTLY = {
    "exp": mp.exp,
    "softplus": lambda v: mp.log1p(mp.exp(v)),
    "sigmoid": lambda v: 1 / (1 + mp.exp(-v)),
    "silu": lambda z: z / (1 + mp.exp(-z)),
    "silu_slope": lambda z: (1 + z / (1 + mp.exp(z))) / (1 + mp.exp(-z)),
}
EDGES = {  # the last finite and the first infinite one, the last subnormal one and the first zero
    "float32": (88.72283, 88.72284, -103.97207, -103.97209),
    "float64": (709.782712893384, 709.7827128933841, -745.1332191019411, -745.1332191019412),
}


def over_arrays(formula):
    """The formula in a loop, compiled."""

    @njit
    def loop(x, y):
        for i in range(x.size):
            y[i] = formula(x[i])

    def call(x):
        y = np.empty_like(x)
        loop(x, y)
        return y

    return call


ours = {name: over_arrays(getattr(exponential, name)) for name in EXACTLY}


def error_in_units(values, points, exactly):
    """The largest error in units in the last place of the exact value."""
    info, worst = np.finfo(points.dtype), 0.0
    with mp.workdps(PRECISION):
        for x, y in zip(points.tolist(), values.tolist(), strict=True):
            wanted = exactly(mp.mpf(x))
            exponent = max(mp.frexp(wanted)[1] - 1, info.minexp) - info.nmant
            worst = max(worst, float(abs(y - wanted) / mp.mpf(2) ** int(exponent)))
    return worst


def spread(dtype, count=2000):
    """Points over the whole range, near 0, and near the borders of rounding to k log 2."""
    info = np.finfo(dtype)
    lowest, highest = log(float(info.smallest_subnormal)), log(float(info.max))
    rng = np.random.default_rng(0)
    borders = (np.arange(-140, 120) + 0.5) * log(2)
    near = np.concatenate([rng.uniform(-1, 1, count), 10.0 ** -rng.uniform(0, 30, count)])
    return np.concatenate([rng.uniform(lowest, highest, count), near, -near, borders]).astype(dtype)


@TYPES
def test_the_exponential_is_right_within_one_unit_in_the_last_place(dtype):
    x = spread(dtype)
    assert error_in_units(ours["exp"](x), x, mp.exp) < 1


@pytest.mark.long
@pytest.mark.parametrize("sign", [0, 1 << 31], ids=["positive", "negative"])
def test_the_exponential_of_each_number_in_single_precision(sign):
    # from 2^-26 to 128; double precision errs by 2^-29 of a unit
    for bits in np.array_split(np.arange(0x32800000, 0x43000000, dtype=np.uint32), 128):
        x = (bits | np.uint32(sign)).view(np.float32)
        y = ours["exp"](x)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            wanted = np.exp(x.astype(np.float64))
            rounded = wanted.astype(np.float32)
            near = abs(y - wanted) < np.spacing(rounded)
        assert np.where(np.isinf(rounded), y == np.inf, near).all()


@TYPES
def test_it_overflows_and_underflows_where_the_exact_value_does(dtype):
    finite, infinite, least, zero = np.array(EDGES[dtype], dtype)
    y = ours["exp"](np.array([finite, infinite, least, zero, 1e30, -1e30], dtype))
    assert np.isfinite(y[0])
    assert y[1:].tolist() == [np.inf, np.finfo(dtype).smallest_subnormal, 0, np.inf, 0]


@TYPES
def test_infinity_nan_and_zero(dtype):
    y = ours["exp"](np.array([-np.inf, np.inf, np.nan, -np.nan, 0.0, -0.0], dtype))
    assert np.array_equal(y, np.array([0, np.inf, np.nan, np.nan, 1, 1], dtype), equal_nan=True)
    for bits in (1, 0x7FFFFF):  # the payload of NaN is no number
        odd = np.array([0x7F800000 + bits], np.uint32).view(np.float32)
        assert np.isnan(ours["exp"](odd)).all()


@TYPES
@pytest.mark.parametrize("name", ["softplus", "sigmoid"])
def test_softplus_and_sigmoid_keep_their_digits_in_both_tails(name, dtype):
    v = spread(dtype)
    assert error_in_units(ours[name](v), v, EXACTLY[name]) < 4


@TYPES
def test_the_gate_and_its_slope(dtype):
    z, info = np.linspace(-80, 80, 1601).astype(dtype), np.finfo(dtype)
    assert error_in_units(ours["silu"](z), z, EXACTLY["silu"]) < 4
    with mp.workdps(PRECISION):
        wanted = np.array([float(EXACTLY["silu_slope"](mp.mpf(float(x)))) for x in z])
    # near the minimum of z σ(z) the slope is a difference of numbers below 1
    assert (abs(ours["silu_slope"](z) - wanted) <= 4 * info.eps * np.maximum(abs(wanted), 1)).all()


@TYPES
def test_the_quick_decay_is_the_careful_one_bit_for_bit(dtype):
    @njit
    def both(steps, rate, y):
        for i in range(steps.size):
            y[0, i] = exponential.bounded_decay(steps[i], rate)
            y[1, i] = exponential.decay(steps[i], rate)

    @njit
    def bound_for(x):
        return exponential.exponent_bound(x)

    rate = np.dtype(dtype).type(-exponential.LOG2_E)
    bound = bound_for(rate)
    assert bound == (125 if dtype == "float32" else 1021)
    steps = np.linspace(-bound, bound, 40001).astype(dtype) / abs(rate)
    y = np.empty((2, steps.size), dtype)
    both(steps, rate, y)
    assert np.array_equal(y[0], y[1])
    # steps · rate = k + r is 2^k 2^r: near 0 as exact as an exponential
    few = np.append(steps[abs(steps) < 1][::50], 0).astype(dtype)
    near = np.empty((2, few.size), dtype)
    both(few, rate, near)
    assert error_in_units(near[0], few, lambda s: mp.mpf(2) ** (s * float(rate))) < 2


@TYPES
def test_the_careful_decay_at_its_ends(dtype):
    @njit
    def decays(steps, rates, y):
        for i in range(steps.size):
            y[i] = exponential.decay(steps[i], rates[i])

    low, high = (-149, 127) if dtype == "float32" else (-1074, 1023)
    exponents = np.array(
        [low, low - 2, high, high + 1, np.inf, -np.inf, np.nan, 1e30, -1e30], dtype
    )
    y = np.empty_like(exponents)
    decays(exponents, np.ones_like(exponents), y)
    info = np.finfo(dtype)
    wanted = [info.smallest_subnormal, 0, 2.0**high, np.inf, np.inf, 0, np.nan, np.inf, 0]
    assert np.array_equal(y, np.array(wanted, dtype), equal_nan=True)
    decays(np.zeros(2, dtype), np.array([np.inf, np.nan], dtype), y)
    assert np.isnan(y[:2]).all()


@elementwise
def in_one_step(x):
    """A planted mistake: 2^k as one factor."""
    number = x.number
    rounded = x.times_plus(exponential.LOG2_E, number.rounder)
    k = rounded - number.rounder
    r = k.times_plus(-number.ln2[1], k.times_plus(-number.ln2[0], x))
    p = 1 + (r * r).times_plus(exponential._polynomial(r, number.exp), r)
    whole = rounded.bits() - number.rounder_bits
    return p * ((whole + number.bias) << number.fraction).floating()


@TYPES
def test_one_factor_is_right_except_where_numbers_are_subnormal(dtype):
    planted, x = over_arrays(in_one_step), spread(dtype)
    subnormal = x < log(float(np.finfo(dtype).tiny))
    usual = x[(x > -80) & (x < 80)]
    assert error_in_units(planted(usual), usual, mp.exp) < 1
    assert not error_in_units(planted(x[subnormal]), x[subnormal], mp.exp) < 1


def interpolated(f, low, high, count):
    """The polynomial through `count` nodes of Chebyshev, the constant first: nearly minimax."""
    nodes = [
        (low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * count))
        for i in range(count)
    ]
    powers = mp.matrix([[x**j for j in range(count)] for x in nodes])
    return list(mp.lu_solve(powers, mp.matrix([f(x) for x in nodes])))


def quotient(numerator, denominator, limit):
    """numerator/denominator, and its limit where it is 0/0."""
    return lambda x: limit if abs(x) < mp.mpf(10) ** -25 else numerator(x) / denominator(x)


def _artanh(w):
    s = mp.sqrt(w) / 2  # 2 artanh(s) = 2s (1 + w q(w)), w = (2s)²
    return mp.atanh(s) / s - 1


@TYPES
def test_the_coefficients_are_those_of_polynomials_at_chebyshevs_nodes(dtype):
    number = {"float32": formula.FLOAT32, "float64": formula.FLOAT64}[dtype]
    with mp.workdps(60):
        half = mp.log(2) / 2
        cases = {
            "exp": (quotient(lambda r: mp.expm1(r) - r, lambda r: r**2, mp.mpf(0.5)), -half, half),
            "exp2": (
                quotient(lambda r: mp.expm1(r * mp.log(2)), lambda r: r, mp.log(2)),
                mp.mpf(-0.5),
                mp.mpf(0.5),
            ),
            "log1p": (quotient(_artanh, lambda w: w, mp.mpf(1) / 12), mp.mpf(0), mp.mpf(4) / 9),
        }
        for name, (f, low, high) in cases.items():
            own = getattr(number, name)
            wanted = [float(c) for c in interpolated(f, low, high, len(own))]
            assert np.array_equal(np.array(own, dtype), np.array(wanted, dtype)), name
        first, rest = number.ln2
        assert first * 2 ** (13 if dtype == "float32" else 40) % 1 == 0  # so k · first is exact
        assert rest == np.dtype(dtype).type(float(mp.log(2) - first))
