"""CUDA's functions in the host build: they are the CPU's, and those that it lacks are right."""

import math

import mpmath
import numpy as np
import pytest
from gpu.hosted import kernel

POINTS = np.concatenate([np.linspace(0.01, 4, 56), [0.0, 0.5, 1.0, 1.5, 2.0, 0.25, 3.0, 1e-6]])
FUNCTIONS = (
    "exp", "expm1", "log1p", "log", "sqrt", "1/sqrt(x)", "tanh", "sin", "cos", "2**x", "log(x,2)",
    "cbrt", "floor", "floor", "nint", "fabs", "atan2(x,2)", "2**x", "sqrt(x*x+9)", "x*x-1",
    "min(x,1)", "max(x,1)", "sinpi", "cospi", "sin(x)+cos(x)", "8*x", "mpf(2)", "mpf(4)",
    "sinpi(x)+cospi(x)",
)  # fmt: skip
EXACT = {12, 13, 14, 15, 20, 21, 25, 26, 27}


def wanted(text, x):
    """The value of the expression in mpmath's words, or of the function of that name."""
    names = {name: getattr(mpmath, name) for name in dir(mpmath)} | {"min": min, "max": max}
    x = mpmath.mpf(x)
    found = eval(text, names | {"x": x})
    return mpmath.mpf(found(x) if callable(found) else found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("which", range(len(FUNCTIONS)), ids=lambda i: FUNCTIONS[i])
def test_a_function_is_within_two_units_of_the_last_place(which, dtype):
    x, out = POINTS.astype(dtype), np.zeros(64, dtype)
    if FUNCTIONS[which] in ("log", "log(x,2)", "1/sqrt(x)"):
        x[x == 0] = 1
    kernel("functions", "float" if dtype == np.float32 else "double", file="numbers.cuh")(
        1, x, out, np.int32(which)
    )
    u = float(np.finfo(dtype).eps)
    with mpmath.workdps(40):
        for point, came in zip(x.tolist(), out.tolist(), strict=True):
            right = wanted(FUNCTIONS[which], point)
            # glibc promises less than one unit for most; the sums have terms of size one
            size = max(abs(right), 1 if "+cos" in FUNCTIONS[which] else 0)
            assert abs(came - right) <= (0 if which in EXACT else 2 * u * size), (point, came)


@pytest.mark.parametrize("T", ["float", "double"])
def test_sincospi_is_exact_at_quarters_and_odd_at_infinity(T):
    dtype = np.float32 if T == "float" else np.float64
    x = np.resize(np.arange(-16, 16) / 2, 64).astype(dtype)
    x[:2] = 1e6 + 0.5, np.inf
    sine, cosine = np.zeros(64, dtype), np.zeros(64, dtype)
    kernel("functions", T, file="numbers.cuh")(1, x, sine, np.int32(22))
    kernel("functions", T, file="numbers.cuh")(1, x, cosine, np.int32(23))
    assert np.isnan(sine[1])
    assert np.isnan(cosine[1])
    quarters = (2 * x[2:]).astype(int) % 4
    np.testing.assert_array_equal(sine[2:], np.array([0, 1, 0, -1])[quarters])
    np.testing.assert_array_equal(cosine[2:], np.array([1, 0, -1, 0])[quarters])
    assert sine[0] == 1


def test_bits_vectors_and_counters_are_as_in_cuda():
    out = np.zeros(9, np.int64)
    kernel("bits", "long long", file="numbers.cuh", block=1)(1, out)
    minus_two = int(np.float32(-2).view(np.uint32))
    bits = 8 + 100 * 31 + 10000 * 4
    assert out.tolist() == [0x3F800000, minus_two, 0x3FF00000, 1, bits, 12, 10, 5, 0]
    assert math.isfinite(out.sum())
