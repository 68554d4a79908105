"""The values and the bounds of cases that people draw for laws of their own."""

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, settings

import refssm
from refssm.conformance.judging import expected as judged
from refssm.conformance.judging.allowed import bounds_of
from refssm.conformance.judging.expected import expect
from refssm.conformance.standard import Standard
from refssm.scan import LINEAR_SCAN
from refssm.testing import Budget, assert_right, bound, cases, expected

SEARCH = settings(max_examples=2000, database=None, derandomize=True, phases=[Phase.generate])


def by_differences(a, b):
    """A scan by differences of cumulative sums: x_k = Σ_j exp(s_k − s_j) b_j."""
    s = np.cumsum(np.log(a), axis=-2, dtype=np.float32)
    later = np.tri(s.shape[-2], dtype=bool)
    decay = np.exp(np.where(later, s - s.swapaxes(-1, -2), -np.inf))
    return (decay @ b).astype(np.float32)


def halved(case):
    """The case with a = 1/2 and b = 1 for 1025 steps."""
    ones = np.ones((1, 1025, 1), np.float32)
    return case.changed(a=ones / 2, b=ones)


def first(name, wanted=lambda case: True, **how):
    """The first case that is wanted; the very first one is the simplest."""
    return find(cases(name, **how), wanted, settings=SEARCH)


@pytest.fixture(scope="module")
def ones():
    """x = 1, 2, 3, 4, 5."""
    return of_ones(first("linear_scan"))


def of_ones(case, l=5):
    """The case of `l` ones."""
    one = np.ones((1, l, 1), np.float32)
    return case.changed(a=one, b=one)


def test_values_are_those_of_the_formula_in_double_precision_and_not_rounded(ones):
    third = ones.changed(a=ones.arguments["a"] / 3)
    x, value = 0.0, float(np.float32(1) / np.float32(3))
    for k in range(5):
        x = value * x + 1
        assert expected(third)[0, k, 0] == pytest.approx(x, rel=2**-52)
    assert expected(third).dtype == np.float64
    assert (expected(third) != expected(third).astype(np.float32)).any()


@pytest.mark.parametrize(
    ("dtype", "wide"), [("float64", "longdouble"), ("complex64", "complex128")]
)
def test_values_of_double_precision_are_long_double(dtype, wide):
    case = first("linear_scan", dtype=dtype, kinds="complex")
    assert expected(case).dtype == np.dtype(wide)


def test_a_bound_is_sixteen_roundings_of_the_tracked_error_and_that_of_the_output(ones):
    x = refssm.linear_scan(*ones.arrays)
    standard = Standard.of("float32")
    (gauge,) = expect(LINEAR_SCAN, list(ones.arrays), {}, standard=standard)
    assert np.array_equal(bound(ones, x), bounds_of(gauge, standard, x.dtype).a)
    wanted = 2.0**-24 * (16 * gauge.k0 + np.abs(gauge.value))
    assert np.array_equal(bound(ones, x), wanted)
    assert (bound(ones, x.astype(float)) < bound(ones, x)).all()  # it is rounded less


def test_an_error_beside_the_bound_is_outside_and_one_below_is_inside(ones):
    x, right = refssm.linear_scan(*ones.arrays).astype(float), expected(ones)
    allowed = bound(ones, x)
    for factor, ok in ((0.99, True), (1.01, False)):
        y = right + factor * allowed
        assert (np.abs(y - right) <= bound(ones, y)).all() == ok


def test_grades_are_ordered_and_c_is_that_of_half_precision():
    case = of_ones(first("linear_scan"), 33)
    x = refssm.linear_scan(*case.arrays)
    a, b, n, c = (bound(case, x, grade=g) for g in "ABNC")
    assert (a <= b).all()
    assert (b <= n).all()
    assert (n <= c).all()
    assert (c > 1000 * a).all()


def test_differences_of_cumulative_sums_are_within_n_and_not_within_b():
    case = halved(first("linear_scan"))
    x = by_differences(*case.arrays)
    error = np.abs(x - expected(case))
    assert (error <= bound(case, x, grade="N")).all()
    assert not (error <= bound(case, x, grade="B")).all()
    assert_right(case, x)


def test_several_outputs_are_a_tuple_and_one_is_an_array():
    case = first("selective_scan_stateful")
    outputs = refssm.selective_scan_stateful(*case.arrays)
    assert [v.shape for v in expected(case)] == [y.shape for y in outputs]
    assert [v.shape for v in bound(case, outputs)] == [y.shape for y in outputs]
    with pytest.raises(
        ValueError, match=r"bound: selective_scan_stateful has 2 outputs \(y, x\), got 1"
    ):
        bound(case, outputs[0])


def test_gradients_are_one_for_each_argument_and_none_for_flags():
    case = first("linear_scan_packed", lambda case: case.sizes["l"] > 1)
    (dx,) = case.cotangents
    gradients = refssm.linear_scan_packed_vjp(dx, *case.arrays)
    right, allowed = expected(case, dx), bound(case, gradients, dx)
    assert right[2] is allowed[2] is gradients[2] is None
    for g, value, most in zip(gradients[:2], right, allowed, strict=False):
        assert (np.abs(g - value) <= most).all()
    assert_right(case, gradients, dx)
    with pytest.raises(AssertionError, match="worst da"):
        assert_right(case, (gradients[0] + 1, *gradients[1:]), dx)


def test_a_convention_of_gradients_that_is_conjugate_is_wrong():
    case = first("linear_scan", lambda case: np.imag(case.arguments["a"]).any(), dtype="complex64")
    gradients = refssm.linear_scan_vjp(*case.cotangents, *case.arrays)
    assert_right(case, gradients, case.cotangents)
    case = case.changed(b=(case.arguments["b"] + np.complex64(1j)).astype(np.complex64))
    gradients = refssm.linear_scan_vjp(*case.cotangents, *case.arrays)
    conjugate = tuple(map(np.conj, gradients))
    with pytest.raises(AssertionError, match="grade F"):
        assert_right(case, conjugate, case.cotangents)


def test_nan_and_a_wrong_shape_or_type_are_one_sentence_each(ones):
    x = refssm.linear_scan(*ones.arrays)
    nan = x.copy()
    nan[0, 2:] = np.nan
    for y, said in [
        (nan, r"`?x\[0, 2, 0\] is NaN, want 3, and 2 more"),
        (x[:, :3], r"`x` has shape \(1, 3, 1\), want \(1, 5, 1\)"),
        (x + 1j, "`x` has type complex64, want float32"),
        (x.astype(np.float16), "`x` has the narrower type float16, want float32"),
        (x.tolist(), r"has 1 output \(x\), got 1|`x` is a list, want an array"),
        (None, "`x` is a NoneType, want an array"),
    ]:
        with pytest.raises(ValueError, match=f"^bound: linear_scan.*{said}"):
            bound(ones, y)
    with pytest.raises(AssertionError, match=r"x\[0, 2, 0\]: got nan"):
        assert_right(ones, nan)
    with pytest.raises(ValueError, match="unknown grade 'D'; wanted one of A, B, N, C"):
        bound(ones, x, grade="D")


def test_an_infinite_result_is_outside_and_no_sentence(ones):
    x = refssm.linear_scan(*ones.arrays)
    x[0, 3] = np.inf
    assert list((np.abs(x - expected(ones)) <= bound(ones, x)).ravel()) == [1, 1, 1, 0, 1]


def test_a_wrong_cotangent_is_one_sentence(ones):
    x = refssm.linear_scan(*ones.arrays)
    for dx, said in [
        (x[:, :3], r"`dx` has shape \(1, 3, 1\), but `x` has \(1, 5, 1\)"),
        (x.astype(float), "`dx` has type float64, the case is of float32"),
        ((x, x), r"wanted 1 cotangents \(dx\), got 2"),
        (1.0, "`dx` must be an array of numbers, got 1.0"),
    ]:
        with pytest.raises(ValueError, match=f"^expected: linear_scan: {said}"):
            expected(ones, dx)
    with pytest.raises(ValueError, match="expected: hippo_legs has no gradient"):
        expected(first("hippo_legs"), ())


def test_outputs_in_any_basis_have_no_bound_of_entries_and_are_judged_all_the_same():
    case = first("nplr_legs")
    outputs = refssm.nplr_legs(**case.statics)
    with pytest.raises(ValueError, match="any basis of its outputs is right"):
        bound(case, outputs)
    assert_right(case, outputs)
    with pytest.raises(AssertionError, match="in norm"):
        assert_right(case, (outputs[0] * 1.001, *outputs[1:]))


def test_where_intermediate_results_may_overflow_the_bound_is_infinite():
    case = of_ones(first("linear_scan"))
    a = np.full_like(case.arguments["a"], 2.0**40)
    grown = case.changed(a=a)
    x = refssm.linear_scan(*grown.arrays)
    assert np.isinf(x).any()
    assert np.isinf(bound(grown, x)).all()


def test_what_is_no_case_is_one_sentence():
    functions: list[Any] = [expected, lambda c: bound(c, 1), lambda c: assert_right(c, 1)]
    for f in functions:
        with pytest.raises(
            ValueError, match=r"wanted a case that `refssm\.testing\.cases` drew, got int"
        ):
            f(3)


def test_a_sixteen_bit_result_is_judged_in_its_type():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    case = of_ones(first("linear_scan", dtype="bfloat16"))
    third = case.changed(a=(case.arguments["a"] / 3).astype(ml_dtypes.bfloat16).astype(np.float32))
    x = expected(third).astype(ml_dtypes.bfloat16)
    assert (np.abs(x.astype(float) - expected(third)) <= bound(third, x)).all()
    assert_right(third, x)
    with pytest.raises(AssertionError, match="grade"):
        assert_right(third, expected(third).astype(np.float32) * np.float32(1.5))


def test_a_flushed_number_is_right_only_where_that_is_declared():
    tiny = np.float32(1e-40)
    for ftz in (False, True):
        case = first("linear_scan", where=["l=1..1", "n=1..1"], ftz=ftz)
        small = case.changed(b=np.full_like(case.arguments["b"], tiny))
        x = refssm.linear_scan(*small.arrays)
        assert (np.abs(0 * x - expected(small)) <= bound(small, 0 * x)).all() == ftz


def test_a_budget_without_n_refuses_what_cancels():
    case = halved(first("linear_scan", accuracy=Budget(normwise=False)))
    with pytest.raises(AssertionError, match="grade C"):
        assert_right(case, by_differences(*case.arrays))


def test_what_is_expected_is_computed_once_for_all_questions(ones, monkeypatch):
    case = ones.changed(a=ones.arguments["a"] / 2)
    (dx,) = case.cotangents
    x, gradients = refssm.linear_scan(*case.arrays), refssm.linear_scan_vjp(dx, *case.arrays)
    calls = []
    usual = judged._expect
    monkeypatch.setattr(judged, "_expect", lambda *how: calls.append(how) or usual(*how))
    for _ in range(2):
        assert_right(case, x)
        assert (np.abs(x - expected(case)) <= bound(case, x)).all()
        assert_right(case, gradients, dx)
        assert len(bound(case, gradients, dx)) == 2
    assert len(calls) == 2  # the outputs, and the gradients
