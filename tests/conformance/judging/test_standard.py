"""Tolerances from a type and a budget: rounding to 16 bits, u, u_out, floor."""

import numpy as np
import pytest

from refssm.conformance.number_types import NUMBER_TYPES, number_type
from refssm.conformance.standard import Standard
from refssm.testing import ARITHMETICS, TYPES, Budget

HALF, BRAIN = number_type("float16"), number_type("bfloat16")


def numbers(seed, low, high, count=20000):
    """Double-precision numbers of all magnitudes between two powers of two, both signs."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(1, 2, count) * 2.0 ** rng.integers(low, high, count)
    return size * rng.choice((-1, 1), count)


def halfway(digits, low, high):
    """Every number with `digits` bits, and every tie between two of them."""
    m = np.arange(2**digits, 2 ** (digits + 1)) / 2**digits
    return np.concatenate([m * 2.0**e for e in range(low, high)])


def rounded(kind, x):
    return kind.rounded(np.asarray(x, float), real=True)


def by_numpy(x):
    with np.errstate(all="ignore"):
        return np.asarray(x, float).astype(np.float16).astype(np.float32)


def by_its_bits(x):
    """float32 rounded to bfloat16: the upper half of the bits, ties to even."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16
    return bits.astype(np.uint32).view(np.float32)


def bitwise(x, y):
    return np.array_equal(x.view(np.uint32), y.view(np.uint32))


@pytest.mark.parametrize("seed", range(3))
def test_rounding_to_float16_is_that_of_numpy_subnormal_and_overflow_too(seed):
    x = numbers(seed, -30, 20)
    assert bitwise(rounded(HALF, x), by_numpy(x))
    assert (np.abs(x) < 2.0**-24).any()
    assert np.isinf(by_numpy(x)).any()


def test_every_float16_and_every_tie_between_two_is_rounded_as_numpy_does():
    x = halfway(11, -26, 16)
    assert bitwise(rounded(HALF, x), by_numpy(x))
    assert bitwise(rounded(HALF, -x), by_numpy(-x))


@pytest.mark.parametrize("seed", range(3))
def test_rounding_to_bfloat16_keeps_the_upper_half_of_the_bits(seed):
    x = numbers(seed, -149, 128).astype(np.float32)
    assert bitwise(rounded(BRAIN, x), by_its_bits(x))
    ties = halfway(8, -134, 128).astype(np.float32)
    assert bitwise(rounded(BRAIN, ties), by_its_bits(ties))


def away_from_zero(x):
    m, e = np.frexp(x)
    return np.ldexp(np.sign(m) * np.floor(np.abs(m) * 2.0**11 + 0.5), e - 11)


WRONG = {
    "toward zero": lambda x: np.ldexp(np.trunc(np.ldexp(np.frexp(x)[0], 11)), np.frexp(x)[1] - 11),
    "ties away from zero": away_from_zero,
    "ten bits": lambda x: np.ldexp(np.rint(np.ldexp(np.frexp(x)[0], 10)), np.frexp(x)[1] - 10),
}


@pytest.mark.parametrize("how", WRONG)
def test_the_comparison_with_numpy_tells_other_roundings_apart(how):
    normal = halfway(11, -14, 15)
    assert not bitwise(WRONG[how](normal).astype(np.float32), by_numpy(normal))


SINGLE_NUMBERS = [
    ("float16", 1 + 2**-11, 1.0),  # a tie: to the even neighbour below
    ("float16", 1 + 3 * 2**-11, 1 + 2**-9),  # and above
    ("float16", 1 + 2**-11 + 2**-40, 1 + 2**-10),  # with float32 in between it would be 1
    ("float16", 65519.99, 65504.0),
    ("float16", 65520.0, np.inf),
    ("float16", -65520.0, -np.inf),
    ("float16", 2**-24, 2**-24),  # the smallest number
    ("float16", 2**-25, 0.0),
    ("float16", 1.001 * 2**-25, 2**-24),
    ("float16", 1.5 * 2**-24, 2**-23),
    ("bfloat16", 1 + 2**-8, 1.0),
    ("bfloat16", 1 + 3 * 2**-8, 1 + 2**-6),
    ("bfloat16", 65520.0, 65536.0),
    ("bfloat16", (2 - 2**-8) * 2.0**127, np.inf),
    ("bfloat16", (2 - 2**-8 - 2**-30) * 2.0**127, (2 - 2**-7) * 2.0**127),
    ("bfloat16", 2.0**-133, 2.0**-133),
    ("bfloat16", 2.0**-134, 0.0),
    ("bfloat16", 1.001 * 2.0**-134, 2.0**-133),
]


@pytest.mark.parametrize(("name", "x", "wanted"), SINGLE_NUMBERS)
def test_single_numbers_round_to_the_nearest_ties_to_even(name, x, wanted):
    assert rounded(number_type(name), x) == wanted


@pytest.mark.parametrize("kind", [HALF, BRAIN], ids=["float16", "bfloat16"])
def test_infinity_nan_and_signed_zero_stay_what_they_are(kind):
    y = rounded(kind, [np.inf, -np.inf, np.nan, 0.0, -0.0])
    assert y.dtype == np.float32
    assert np.array_equal(y, [np.inf, -np.inf, np.nan, 0, 0], equal_nan=True)
    assert np.signbit(y).tolist()[3:] == [False, True]


def test_types_that_numpy_has_are_rounded_by_numpy():
    x = np.array([1 + 2.0**-30, 0.1])
    assert number_type("float32").rounded(x, real=True).tolist() == [1, np.float32(0.1)]
    assert number_type("float64").rounded(x, real=True).tolist() == x.tolist()
    assert number_type("complex64").rounded(x + 1j, real=False).dtype == np.complex64
    assert number_type("complex64").rounded(x, real=True).dtype == np.float32


UNITS = {
    "float32": (24, 2.0**-126, np.float32),
    "complex64": (24, 2.0**-126, np.complex64),
    "float64": (53, 2.0**-1022, np.float64),
    "complex128": (53, 2.0**-1022, np.complex128),
    "float16": (11, 2.0**-14, np.float32),
    "bfloat16": (8, 2.0**-126, np.float32),
}


@pytest.mark.parametrize("name", UNITS)
def test_a_type_alone_is_held_to_its_own_digits(name):
    digits, tiny, carrier = UNITS[name]
    held = Standard.of(name)
    assert (held.u, held.u_out(carrier), held.floor) == (2.0**-digits, 2.0**-digits, tiny)
    assert (held.room, held.ftz) == (16, False)
    assert held.type.carrier == carrier
    assert number_type(name).half == (name in ("float16", "bfloat16"))


def test_every_type_and_every_arithmetic_that_can_be_declared_has_a_standard():
    assert set(UNITS) == set(TYPES) == set(NUMBER_TYPES)
    units = {name: Standard.of("float32", Budget(computes=name)).u for name in ARITHMETICS}
    assert units == {
        "float64": 2.0**-53,
        "float32": 2.0**-24,
        "tf32": 2.0**-11,
        "float16": 2.0**-11,
        "bfloat16": 2.0**-8,
    }


def test_an_arithmetic_of_its_own_leaves_the_output_to_its_type():
    held = Standard.of("bfloat16", Budget(computes="float32"))
    assert (held.u, held.u_out(np.float32)) == (2.0**-24, 2.0**-8)
    held = Standard.of("float32", Budget(computes="tf32"))
    assert (held.u, held.u_out(np.float32), held.floor) == (2.0**-11, 2.0**-24, 2.0**-126)


def test_an_output_wider_than_the_type_is_held_to_its_own_rounding():
    assert Standard.of("bfloat16").u_out(np.float64) == 2.0**-53
    assert Standard.of("float32").u_out(np.float64) == 2.0**-53
    assert Standard.of("complex64").u_out(np.complex128) == 2.0**-53


def test_the_floor_is_the_smallest_normal_number_of_the_arithmetic():
    assert Standard.of("float32", Budget(computes="float16")).floor == 2.0**-14
    assert Standard.of("float16", Budget(computes="float32")).floor == 2.0**-126
    assert Standard.of("float32", Budget(computes="float64")).floor == 2.0**-1022


def test_a_flushed_subnormal_is_a_whole_smallest_normal_number_away():
    held = Standard.of("float32", ftz=True)
    assert held.u * held.floor == 2.0**-126
    assert Standard.of("float32").u * Standard.of("float32").floor == 2.0**-150


def test_the_room_is_that_of_the_budget():
    assert Standard.of("float64", Budget(C=64)).room == 64


def test_a_numpy_dtype_is_as_good_as_a_name():
    assert number_type(np.dtype(np.complex64)) is number_type("complex64")
    assert number_type(np.float32) is number_type("float32")
    assert number_type(np.longdouble).u == float(np.finfo(np.longdouble).eps) / 2
