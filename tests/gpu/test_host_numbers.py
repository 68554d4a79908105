"""The numbers of the kernels beside NumPy's: halves bit by bit, complex quotients at the edges."""

import mpmath
import numpy as np
import pytest
from gpu.hosted import kernel

ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 arrays need ml_dtypes")
HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
IN_BITS = {np.float32: np.uint32, np.float64: np.uint64}


def ran(name, S, x, out):
    kernel(name, S, file="numbers.cuh")(-(-x.size // 64), x, out, np.int64(x.size))
    return out


@pytest.mark.parametrize("S", HALVES)
def test_every_half_becomes_the_float32_of_the_same_value(S):
    x = np.arange(2**16, dtype=np.uint16).view(HALVES[S])
    with np.errstate(invalid="ignore"):
        wanted = x.astype(np.float32)
    came = ran("widened", S, x, np.zeros(x.size, np.float32))
    np.testing.assert_array_equal(came, wanted)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(came.view(np.uint32)[number], wanted.view(np.uint32)[number])


def floats_around_halves(S):
    """Each half, the ties between neighbours, and their neighbours as float32."""
    x = np.arange(2**16, dtype=np.uint16).view(HALVES[S]).astype(np.float32)
    x = np.sort(x[np.isfinite(x)])
    with np.errstate(over="ignore"):
        ties = x[:-1] / 2 + x[1:] / 2
    ends = np.array([65519.99, 65520, 1e30, 3.4e38, np.inf, np.nan, 2.0**-25, 2.0**-26], np.float32)
    points = np.concatenate([x, ties, ends, -ends])
    up, down = np.float32(np.inf), np.float32(-np.inf)
    with np.errstate(over="ignore"):
        near = [np.nextafter(points, up), np.nextafter(points, down)]
    return np.concatenate([points, *near])


@pytest.mark.parametrize("S", HALVES)
def test_a_float32_is_rounded_to_the_nearest_half_and_ties_to_even(S):
    x = floats_around_halves(S)
    x = x[(np.abs(x) >= np.finfo(np.float32).tiny) | (x == 0) | np.isnan(x)]  # the rest is flushed
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = x.astype(HALVES[S])
    came = ran("narrowed", S, x, np.zeros(x.size, HALVES[S]))
    number = ~np.isnan(x)
    np.testing.assert_array_equal(came.view(np.uint16)[number], wanted.view(np.uint16)[number])
    assert (came.view(np.uint16)[~number] == 0x7FFF).all()


@pytest.mark.parametrize("E", ["complex64", "complex128"])
def test_the_algebra_of_complex_numbers_is_that_of_their_formulas(E):
    rng = np.random.default_rng(3)
    a, b = ((rng.integers(-9, 10, (70, 2)) + 0.5).astype(E) @ np.array([1, 1j], E) for _ in "ab")
    r = b.real.copy()
    rows = (a + b, a - b, -a, a * b, a.conj(), r * a, a * r, a + r, r - a, None, None, a.real)
    out = np.zeros((12, 70), E)
    kernel("algebra", E, file="numbers.cuh")(2, a, b, out, np.int64(70))
    for k, row in enumerate(rows):  # small multiples of ½: exact
        if row is not None:
            np.testing.assert_array_equal(out[k], row, err_msg=str(k))
    np.testing.assert_array_equal(out[9], a.real / r + 1j * (a.imag / r))
    np.testing.assert_array_equal(out[10], a.real**2 + a.imag**2)


def test_real_numbers_have_the_same_words():
    x, out = np.arange(1, 65, dtype=np.float64), np.zeros((12, 64))
    kernel("algebra", "float64", file="numbers.cuh")(1, x, x, out, np.int64(64))
    rows = (2 * x, 0 * x, -x, x * x, x, x * x, x * x, 2 * x, 0 * x, x / x, x * x, x)
    np.testing.assert_array_equal(out, rows)


def edges(E):
    """Quotients whose parts lie anywhere between the smallest and the largest number."""
    rng = np.random.default_rng(8)
    info = np.finfo(E)
    # no part is subnormal: complex64's would be flushed
    span = (np.log2(float(info.smallest_normal)) + 5, np.log2(float(info.max)) - 2)

    def parts(n):
        size = np.exp2(rng.uniform(*span, n)) * rng.choice([-1, 1], n)
        return size * rng.uniform(0.5, 1, n)

    x, y = ((parts(4000) + 1j * parts(4000)).astype(E) for _ in "xy")
    alike = rng.random(4000) < 0.5  # a second part of a like size
    y[alike] = y[alike].real * (1 + 1j * rng.uniform(0.1, 1, alike.sum()).astype(info.dtype))
    return x, y


@pytest.mark.parametrize("E", ["complex64", "complex128"])
def test_a_quotient_is_right_wherever_it_is_representable(E):
    x, y = edges(E)
    out = ran_quotient(E, x, y)
    info = np.finfo(E)
    u = float(info.eps) / 2
    with mpmath.workprec(200):
        for a, b, q in zip(x.tolist(), y.tolist(), out.tolist(), strict=True):
            wanted = mpmath.mpc(a) / mpmath.mpc(b)
            if not 2 * info.smallest_normal / u < abs(wanted) < float(info.max) / 4:
                continue  # may round to zero or infinity
            # 4 roundings in each part of x conj(y), 3 of |y|², one of the quotient, and √2
            # between the parts and the whole: below 12 u of the whole
            assert abs(mpmath.mpc(q) - wanted) <= 12 * u * abs(wanted), (a, b, q)


def ran_quotient(E, x, y):
    out = np.zeros_like(x)
    kernel("quotient", E, file="numbers.cuh")(-(-x.size // 64), x, y, out, np.int64(x.size))
    return out


@pytest.mark.parametrize("E", ["complex64", "complex128"])
def test_a_quotient_by_zero_or_infinity_is_what_numpy_says(E):
    parts = np.array([0.0, 1.0, -2.0, np.inf, np.nan])
    with np.errstate(invalid="ignore"):
        grid = (parts[:, None] + 1j * parts).ravel()
    grid.imag = np.tile(parts, 5)
    grid.real = np.repeat(parts, 5)
    x, y = (z.ravel().astype(E) for z in np.meshgrid(grid, grid))
    with np.errstate(all="ignore"):
        wanted = x / y
    out = ran_quotient(E, x, y)
    np.testing.assert_array_equal(np.isnan(out.real), np.isnan(wanted.real))
    np.testing.assert_array_equal(np.isnan(out.imag), np.isnan(wanted.imag))
    infinite = ~np.isfinite(wanted) & ~np.isnan(wanted)
    np.testing.assert_array_equal(out[infinite], wanted[infinite])


@pytest.mark.parametrize("E", ["complex64", "complex128"])
def test_exponentials_and_inverses_of_complex_numbers_are_right(E):
    rng = np.random.default_rng(2)
    x = (rng.uniform(-5, 5, 64) + 1j * rng.uniform(-40, 40, 64)).astype(E)
    out, inverse = np.zeros_like(x), np.zeros_like(x)
    kernel("exponential", E, file="numbers.cuh")(1, x, out, inverse, np.int64(64))
    u = float(np.finfo(E).eps) / 2
    with mpmath.workprec(200):
        for a, e, q in zip(x.tolist(), out.tolist(), inverse.tolist(), strict=True):
            right, a = mpmath.exp(mpmath.mpc(a)), mpmath.mpc(a)
            # 2 u in each of exp, sin and cos (glibc: below one unit), u in the product
            assert abs(mpmath.mpc(e) - right) <= 5 * u * abs(right)
            assert abs(mpmath.mpc(q) * a - 1) <= 12 * u  # as for the quotient
