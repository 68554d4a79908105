import math
from fractions import Fraction

import numpy as np
import pytest

from refssm.catalog import OPERATORS
from refssm.cauchy import CAUCHY_KERNEL
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks.checks import types_of
from refssm.conformance.vectors.exact import FORMATS, certain, nearest
from refssm.scan import LINEAR_SCAN

SINGLE, DOUBLE = FORMATS["float32"], FORMATS["float64"]
ENCLOSED = [op for op in OPERATORS if "enclosure" not in op.lacks]
WITHOUT = {"nplr", "spectral", "hankel"}  # some of their results are one of many bases


@pytest.fixture
def flint():
    return pytest.importorskip("flint", reason="enclosures need python-flint: '.[flint]'")


@pytest.fixture
def rounded(flint):
    from refssm.conformance.vectors.exact import correctly_rounded

    return correctly_rounded


def arguments(op, dtype, sizes=(3, 2, 2, 2)):
    case = ordinary_case(op, dtype, sizes=sizes)
    return case.arrays if op.inputs else [], case.statics


def rational(end):
    return Fraction(end[0]) * Fraction(2) ** end[1]


@pytest.mark.parametrize("op", ENCLOSED, ids=str)
def test_ball_arithmetic_and_mpmath_round_to_the_same_numbers(op, rounded):
    arrays, statics = arguments(op, types_of(op)[-1])
    (first, *_) = rounded(op, arrays, statics, ["float32", "float64"])
    y = op.reference(*arrays, **statics)
    y = y[0] if isinstance(y, tuple) else y
    assert first["float64"].shape == y.shape
    assert np.iscomplexobj(first["float64"]) == np.iscomplexobj(y)


def test_most_operators_have_an_enclosure_and_the_others_are_named():
    assert len(ENCLOSED) > 90
    assert {op.family for op in OPERATORS if "enclosure" in op.lacks} == WITHOUT


def test_the_ends_of_a_ball_enclose_the_exact_rational_number(flint):
    from refssm.enclosure import ends

    a, b = (
        np.array([[0.1], [0.7], [-1.3]], np.float64),
        np.array([[1 / 3], [0.2], [5.0]], np.float64),
    )
    x, exact = Fraction(0), []
    for a_k, b_k in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True):
        x = Fraction(a_k) * x + Fraction(b_k)
        exact.append(x)
    (entries,) = ends(LINEAR_SCAN, [a, b], {}, 64)
    for x, [(low, high)] in zip(exact, entries, strict=True):
        assert rational(low) <= x <= rational(high)
    assert rational(entries[-1][0][0]) < rational(entries[-1][0][1])  # 64 bits do not suffice


def test_more_bits_make_smaller_balls(flint):
    from refssm.enclosure import ends

    arrays, statics = arguments(CAUCHY_KERNEL, "complex128")

    def width(bits):
        (entries,) = ends(CAUCHY_KERNEL, arrays, statics, bits)
        return max(rational(high) - rational(low) for parts in entries for low, high in parts)

    assert width(256) < width(128) < width(64)


@pytest.mark.parametrize("role", ["enclosure", "oracle"])
def test_a_planted_bug_in_either_oracle_is_a_disagreement_that_names_the_entry(
    role, rounded, monkeypatch
):
    from refssm.conformance.vectors.exact import Disagreement

    right = CAUCHY_KERNEL.implementation(role)

    def wrong(v, w, z):
        k = right(v, w, z)
        return [*k[:-1], k[-1] * (1 + 2.0**-50)]

    monkeypatch.setattr(f"refssm.{role}.cauchy.cauchy_kernel", wrong)
    arrays, statics = arguments(CAUCHY_KERNEL, "complex128")
    with pytest.raises(Disagreement, match=r"cauchy_kernel: k\[0, 2\] is .* by ball .* mpmath"):
        rounded(CAUCHY_KERNEL, arrays, statics, ["float64"])


def test_what_no_precision_decides_is_said(rounded, monkeypatch):
    from refssm.conformance.vectors.exact import Undecided

    right = CAUCHY_KERNEL.implementation("enclosure")
    from flint import arb

    wide = arb(0, 1)  # 0 ± 1 at any precision
    monkeypatch.setattr(
        "refssm.enclosure.cauchy.cauchy_kernel", lambda *args: [k + wide for k in right(*args)]
    )
    arrays, statics = arguments(CAUCHY_KERNEL, "complex128")
    with pytest.raises(Undecided, match=r"k\[0, 0\] cannot be rounded with 8192 bits"):
        rounded(CAUCHY_KERNEL, arrays, statics, ["float64"])


def test_a_sum_that_cancels_to_nothing_is_zero(rounded):
    a, b = np.array([[0.5], [-1.0]], np.float64), np.array([[1.0], [1.0]], np.float64)
    (x,) = rounded(LINEAR_SCAN, [a, b], {}, ["float32", "float64"])
    assert x["float64"].ravel().tolist() == [1.0, 0.0]
    assert not np.signbit(x["float32"][1, 0])


def test_a_sum_halfway_between_two_numbers_goes_to_the_even_one(rounded):
    a, b = np.array([[1.0], [1.0]], np.float32), np.array([[1.0], [2.0**-24]], np.float32)
    (x,) = rounded(LINEAR_SCAN, [a, b], {}, ["float32", "float64"])
    assert x["float32"][1, 0] == 1.0
    assert x["float64"][1, 0] == 1.0 + 2.0**-24


def test_rounding_agrees_with_pythons_own_division_of_whole_numbers():
    rng = np.random.default_rng(1)
    for _ in range(2000):
        m = int(rng.integers(1, 2**62)) >> int(rng.integers(62)) or 1
        e = int(rng.integers(-1140, 900))
        sign = int(rng.choice([-1, 1]))
        exact = Fraction(sign * m) * Fraction(2) ** e
        assert nearest(sign * m, e, DOUBLE) == float(exact)
        if abs(exact) < 2**120:
            # the 53 bits are exact in double precision; NumPy then rounds once
            short = Fraction(sign * (m >> 9)) * Fraction(2) ** e
            if Fraction(float(short)) == short:
                assert nearest(sign * (m >> 9), e, SINGLE) == float(np.float32(float(short)))


@pytest.mark.parametrize(
    ("m", "e", "fmt", "wanted"),
    [
        (0, 500, DOUBLE, 0.0),
        (1, -1074, DOUBLE, 5e-324),
        (1, -1075, DOUBLE, 0.0),  # halfway to the smallest number: rounds to even
        (3, -1076, DOUBLE, 5e-324),
        (-1, -1080, DOUBLE, -0.0),
        (2**53 + 1, 0, DOUBLE, 2.0**53),
        (2**53 + 3, 0, DOUBLE, 2.0**53 + 4),
        (2**54 - 1, 970, DOUBLE, math.inf),
        (1, 1024, DOUBLE, math.inf),
        (-1, 1024, DOUBLE, -math.inf),
        (2**24 + 1, 0, SINGLE, 2.0**24),
        (1, -150, SINGLE, 0.0),
        (3, -151, SINGLE, 2.0**-149),
        (2**25 - 1, 103, SINGLE, math.inf),
    ],
)
def test_rounding_at_the_edges_of_a_format(m, e, fmt, wanted):
    got = nearest(m, e, fmt)
    assert got == wanted
    assert math.copysign(1, got) == math.copysign(1, wanted)


def test_a_ball_is_decided_where_both_ends_round_to_one_number():
    assert certain((1, 0), (1, 0), DOUBLE) == 1.0
    assert certain((2**60 - 1, -60), (2**60 + 1, -60), DOUBLE) == 1.0
    assert certain((2**53 + 1, -53), (2**54 + 3, -54), DOUBLE) is None  # contains a tie
    assert certain(None, None, DOUBLE) is None


def test_a_ball_about_zero_is_zero_without_a_sign():
    both, below = (
        certain((-1, -1080), (1, -1080), DOUBLE),
        certain((-3, -1080), (-1, -1080), DOUBLE),
    )
    assert both is not None
    assert below is not None
    assert (both, np.signbit(both)) == (0.0, False)
    assert (below, np.signbit(below)) == (0.0, True)
