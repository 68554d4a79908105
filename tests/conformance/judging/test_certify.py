from dataclasses import replace
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from calls import WITH_ARGUMENTS

import refssm.conformance.judging.grading as judging
from refssm import oracle
from refssm.catalog import OPERATORS
from refssm.cauchy import CAUCHY_KERNEL
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.judging.certificate import adjoint_slip, certify, refuse_if_wrong
from refssm.conformance.judging.expected import SHORT, expect
from refssm.conformance.judging.grading import compare, judge, span_product
from refssm.conformance.judging.verdict import Verdict, kind_of
from refssm.conformance.standard import C
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM, linear_scan

operators = pytest.mark.parametrize("op", OPERATORS, ids=str)
FACTOR = 1 + 2.0**-40  # far above double precision's error, far below what a plot shows
long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="longdouble is float64 here"
)


def scaled(function, by=FACTOR, place=None):
    """`function` with all results, or the one at `place`, multiplied by `by`."""

    def wrong(*args, **statics):
        y = function(*args, **statics)
        if isinstance(y, tuple):
            return tuple(by * x if place in (i, None) else x for i, x in enumerate(y))
        return [by * k for k in y] if isinstance(y, list) else by * y

    wrong.__name__, wrong.__module__ = function.__name__, function.__module__
    return wrong


@pytest.mark.long
@operators
def test_every_reference_is_certified_by_its_oracle(op):
    assert certify(op) == ""


@operators
def test_a_wrong_reference_is_found(op):
    reason = certify(replace(op, reference=scaled(op.reference)))
    assert reason.startswith("refssm's reference disagrees with its oracle: worst ")


@operators
def test_a_reference_that_gives_nan_is_found(op):
    reason = certify(replace(op, reference=scaled(op.reference, by=np.nan)))
    assert reason == "refssm's reference is not finite on a case without special values"


def test_a_reference_that_gives_nan_at_one_place_and_is_wrong_elsewhere_is_found():
    def linear_scan(a, b):
        x = LINEAR_SCAN.reference(a, b)
        x[..., 5:, :1] = np.nan
        x[..., 5:, -1:] = FACTOR * x[..., 5:, -1:]
        return x

    linear_scan.__module__ = LINEAR_SCAN.reference.__module__
    reason = certify(replace(LINEAR_SCAN, reference=linear_scan))
    assert reason == "refssm's reference is not finite on a case without special values"


def test_a_wrong_oracle_is_found(monkeypatch):
    monkeypatch.setattr(
        "refssm.oracle.cauchy.cauchy_kernel", scaled(CAUCHY_KERNEL.implementation("oracle"))
    )
    assert certify(CAUCHY_KERNEL).startswith("refssm's reference disagrees with its oracle: worst ")
    monkeypatch.setattr("refssm.oracle.scan.linear_scan", lambda a, b: b)
    assert certify(LINEAR_SCAN).startswith("refssm's reference disagrees with its oracle: worst ")


@pytest.mark.long
@pytest.mark.parametrize("op", WITH_ARGUMENTS, ids=str)
@pytest.mark.parametrize("by", [FACTOR, -1, 0, np.nan], ids=["off", "sign", "zero", "nan"])
def test_a_wrong_vjp_is_found_in_every_argument(op, by, monkeypatch):
    right = op.bare_vjp
    for place, name in enumerate(op.inputs):
        if name in op.discrete:
            continue
        family = import_module(f"refssm.{op.family}")
        monkeypatch.setattr(family, right.__name__, scaled(right, by, place))
        assert certify(op).startswith(
            "refssm's VJP disagrees with the derivative of its oracle: ratio "
        )


def test_a_vjp_without_the_conjugate_is_found(monkeypatch):
    right = LINEAR_SCAN.bare_vjp

    def linear_scan_vjp(dx, a, b):
        return right(dx, a.conj(), b)

    monkeypatch.setattr("refssm.scan.linear_scan_vjp", linear_scan_vjp)
    assert certify(LINEAR_SCAN).startswith("refssm's VJP disagrees")


def test_an_operator_without_an_oracle_is_not_certified():
    def nameless(a, b):
        return linear_scan(a, b)

    nameless.__module__ = "refssm.scan"
    assert certify(replace(LINEAR_SCAN, reference=nameless)).startswith("there is no oracle: ")
    nameless.__module__ = "refssm.nowhere"
    assert certify(replace(LINEAR_SCAN, reference=nameless)).startswith("there is no oracle: ")


@pytest.mark.long
@pytest.mark.parametrize("op", WITH_ARGUMENTS, ids=str)
def test_the_adjoint_identity_holds_within_the_tolerance_of_the_judge_in_every_role(op):
    case = ordinary_case(op, "complex128")
    for role in {"reference", "jit"} - op.lacks:
        assert adjoint_slip(op, op.vjp(role), case) <= C


@pytest.mark.long
@pytest.mark.parametrize("op", WITH_ARGUMENTS, ids=str)
def test_the_adjoint_identity_sees_a_flipped_sign_and_nan(op):
    case = ordinary_case(op, "complex128")
    assert not adjoint_slip(op, scaled(op.vjp(), -1, 0), case) <= C
    assert not adjoint_slip(op, scaled(op.vjp(), np.nan, 0), case) <= C


def test_the_judge_is_right_on_exact_integers():
    refuse_if_wrong()


@pytest.mark.parametrize("grade", "ABCF-")
def test_a_judge_that_gives_everybody_the_same_grade_is_refused(grade, monkeypatch):
    monkeypatch.setattr(judging, "compare", lambda *_, **__: Verdict(grade))
    with pytest.raises(RuntimeError, match=f"refssm grades exact integers wrongly.*'{grade}'"):
        refuse_if_wrong()


def test_a_judge_that_overlooks_nan_is_refused(monkeypatch):
    def lenient(actual, *args, **kwargs):
        return compare(np.where(np.isnan(actual), 13, actual).astype("f"), *args, **kwargs)

    monkeypatch.setattr(judging, "compare", lenient)
    with pytest.raises(RuntimeError, match="want A F F"):
        refuse_if_wrong()


def test_single_precision_is_judged_by_the_reference_and_double_by_the_oracle(monkeypatch):
    monkeypatch.setattr(
        oracle, "evaluate", lambda op, *arrays, **_: (np.zeros(arrays[0].shape, np.longdouble),)
    )
    a, b = np.ones((2, SHORT + 1, 3))  # up to SHORT steps balls give the values
    assert not judge(LINEAR_SCAN, linear_scan, a, b).ok
    assert judge(LINEAR_SCAN, linear_scan, a.astype("f"), b.astype("f")).ok
    a[2, 1] = np.nan  # special values are judged by the reference in every precision
    assert judge(LINEAR_SCAN, linear_scan, a, b).ok


@long_double
def test_what_is_too_large_for_the_oracle_is_judged_in_long_double(monkeypatch):
    monkeypatch.delattr(oracle, "evaluate")
    a, b = np.random.default_rng(1).random((2, LINEAR_SCAN.contract.oracle_entries + 1, 1))
    assert judge(LINEAR_SCAN, linear_scan, a, b).grade == "A"
    assert not judge(LINEAR_SCAN, scaled(linear_scan), a, b).ok
    with pytest.raises(AttributeError):
        judge(LINEAR_SCAN, linear_scan, a[1:], b[1:])


def test_expectations_are_floored_by_what_underflows():
    tiny = np.finfo(np.float32).tiny
    a, b = np.full((2, 1), tiny, "f"), np.array([[100], [0]], "f")
    (gauge,) = expect(LINEAR_SCAN, [a * tiny, b])
    assert gauge.value[1, 0] == 0
    assert gauge.k0[1, 0] >= 100 * float(tiny)


def test_expectations_of_a_vjp_take_the_cotangents_first():
    case = ordinary_case(LINEAR_SCAN, "float32")
    dx = np.ones_like(case.arrays[1])
    gauges = expect(LINEAR_SCAN, [dx, *case.arrays], vjp=LINEAR_SCAN.bare_vjp)
    gradients = LINEAR_SCAN.vjp()(dx, *case.arrays)
    assert all(
        compare(g, gauge, np.dtype("f")).grade == "A"
        for g, gauge in zip(gradients, gauges, strict=True)
    )


def longest_product(a):
    """max |Π a| over every span of time, exactly; at least 1 (the empty span)."""
    best = Fraction(1)
    for channel in np.abs(a).reshape(-1, *a.shape[-2:]).transpose(0, 2, 1).reshape(-1, a.shape[-2]):
        for start in range(channel.size):
            product = Fraction(1)
            for factor in channel[start:].tolist():
                product *= Fraction(factor)
                best = max(best, product)
    return best


def within_a_rounding_per_step(found, exact, steps):
    slack = (1 + Fraction(2) ** -44) ** steps  # of log2 of each factor, of the final power
    return exact / slack <= Fraction(found) <= exact * slack


@pytest.mark.parametrize("seed", range(6))
def test_the_largest_product_over_a_span_is_found(seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((2, 12, 3)) * 2.0 ** rng.integers(-2, 3, (2, 12, 3))
    a[rng.random(a.shape) < 0.1] = 0
    b = np.full((12, 3), 1e9)
    for op, arrays in ((LINEAR_SCAN, (a, b)), (LINEAR_SCAN_FROM, (a, b, b[0]))):
        assert within_a_rounding_per_step(span_product(op, arrays), longest_product(a), 12)


def test_the_product_over_a_span_is_one_at_least_and_finite():
    small = np.full((4, 1), 0.5)
    assert span_product(LINEAR_SCAN, (small, small)) == 1
    assert span_product(LINEAR_SCAN, (small[:0], small[:0])) == 0
    assert span_product(CAUCHY_KERNEL, (small[0], small[0], small[0])) == 0
    for special in (np.nan, np.inf, 1e300):
        product = span_product(LINEAR_SCAN, (np.full((4, 1), special), small))
        assert kind_of(product) == 0
    assert product == 2.0**1023
