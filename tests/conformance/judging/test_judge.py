import numpy as np
import pytest

from refssm.cauchy import CAUCHY_KERNEL
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.expected import expect, unit_roundoff
from refssm.conformance.judging.grading import HEADROOM, compare, grade_outputs, judge
from refssm.conformance.judging.verdict import Verdict, kind_of, worst_of, wrong
from refssm.conformance.standard import HALF_PRECISION, C
from refssm.scan import LINEAR_SCAN, linear_scan

TYPES = ("float32", "float64", "complex64", "complex128")
U = unit_roundoff(np.float32)
MAX = float(np.finfo(np.float32).max)
SINGLE = np.dtype("float32")
NAN, INF = np.nan, np.inf
long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="longdouble is float64 here"
)


def scans(dtype, shape=(20, 3)):
    """Decays and inputs of a scan; complex for a complex dtype."""
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, *shape)) + 1j * rng.standard_normal((2, *shape))
    return [(x if np.dtype(dtype).kind == "c" else x.real).astype(dtype) for x in (a / 2, b)]


def gauge(value, k0=1.0, k1=1.0, peak=1.0):
    value = np.asarray(value)
    return Gauge(value, np.full(value.shape, k0), np.full(value.shape, k1), peak)


def graded(actual, wanted, dtype: np.dtype = SINGLE, **bounds):
    """The verdict on a few float32 numbers."""
    return compare(np.array(actual, dtype), gauge(np.array(wanted, dtype), **bounds), dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_right_answer_has_grade_a(dtype):
    verdict = judge(LINEAR_SCAN, linear_scan, *scans(dtype))
    assert (verdict.grade, verdict.verdict, verdict.ok) == ("A", "pass", True)
    assert verdict.ratio <= 1
    assert 0 < verdict.bits <= -np.log2(unit_roundoff(dtype))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_relative_error_of_1e_12_is_refused_in_double_precision(dtype):
    verdict = judge(LINEAR_SCAN, lambda a, b: linear_scan(a, b) * (1 + 1e-12), *scans(dtype))
    assert (verdict.grade, verdict.verdict, verdict.ok) == ("C", "inaccurate", False)
    assert "entries are wrong" in verdict.message


@pytest.mark.parametrize("dtype", TYPES)
def test_a_sign_flipped_at_one_place_is_wrong_there(dtype):
    def flipped(a, b):
        x = linear_scan(a, b)
        x[7, 2] *= -1
        return x

    verdict = judge(LINEAR_SCAN, flipped, *scans(dtype))
    assert (verdict.grade, verdict.verdict) == ("F", "wrong")
    assert verdict.message.startswith("worst x[7, 2]: got ")
    assert "every entry with l = 7 wrong" not in verdict.message
    assert "entries with l = 7 wrong, one of 20, no other" in verdict.message


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("special", [NAN, INF])
def test_nan_and_infinity_are_wrong_where_a_number_is_due(dtype, special):
    def poisoned(a, b):
        x = linear_scan(a, b)
        x[-1, 0] = special
        return x

    verdict = judge(LINEAR_SCAN, poisoned, *scans(dtype))
    assert (verdict.grade, verdict.ratio, verdict.bits) == ("F", INF, 0)
    assert "worst x[19, 0]: got " in verdict.message
    assert f"({'NaN' if special is NAN else 'infinite'}), want finite" in verdict.message


def test_the_error_allowed_around_zero_is_16_u_k0_and_not_a_bit_more():
    bound = np.float32(C * U)
    at, above = graded([bound], [0.0]), graded([np.nextafter(bound, 1, dtype=SINGLE)], [0.0])
    assert (at.grade, at.ratio, at.bits) == ("A", C, 20)
    assert (above.grade, above.ok) == ("C", False)


def test_the_rounding_of_the_answer_itself_is_allowed_on_top():
    assert graded([1 + 16 * U], [1.0]).grade == "A"
    assert graded([1 + 18 * U], [1.0]).grade == "C"


@pytest.mark.parametrize(
    ("error", "grade", "verdict"),
    [
        (0.0, "A", "pass"),
        (16 * U, "A", "pass"),
        (17 * U, "B", "pass"),
        (64 * U, "B", "pass"),
        (65 * U, "C", "inaccurate"),
        (C * HALF_PRECISION * 4, "C", "inaccurate"),
        (C * HALF_PRECISION * 4.5, "F", "wrong"),
        (NAN, "F", "wrong"),
    ],
)
def test_each_grade_has_its_bound(error, grade, verdict):
    for sign in (1, -1):
        found = graded([0.0, sign * error], [0.0, 0.0], k0=1.0, k1=4.0)
        assert (found.grade, found.verdict, found.ok) == (grade, verdict, verdict == "pass")


def test_bits_are_those_that_are_right_and_no_more_than_the_type_has():
    assert graded([1.0], [1.0]).bits == 24
    assert graded([U / 1024], [0.0]).bits == 24
    assert graded([4 * U], [0.0]).bits == 22
    assert graded([8.0], [0.0]).bits == 0
    double = compare(np.ones(1), gauge(np.ones(1)), np.dtype(float))
    assert double.bits == 53


def test_an_error_of_one_subnormal_is_no_error_at_all():
    wanted = gauge(np.zeros(1), k0=1e3, k1=1e3)
    verdict = compare(np.array([5e-324]), wanted, np.dtype(float))
    assert (verdict.grade, verdict.bits) == ("A", 53)


def test_a_complex_error_is_a_modulus():
    kind = np.dtype("complex64")
    inside, outside = 8 * U * (1 + 1j), 12 * U * (1 + 1j)
    assert graded([inside], [0j], kind).grade == "A"
    assert graded([outside], [0j], kind).grade == "C"


def test_entries_without_a_bound_are_not_judged_and_the_others_are():
    for k in (INF, NAN):
        open_ = Gauge(np.zeros(2), np.array([1.0, k]), np.array([1.0, k]), 1.0)
        assert compare(np.array([0, 9], SINGLE), open_, SINGLE).grade == "A"
        assert compare(np.array([9, 9], SINGLE), open_, SINGLE).grade == "F"
    assert graded([9.0], [0.0], k0=INF, k1=INF).grade == "-"


def test_nothing_to_judge_is_a_pass_and_an_empty_array_is_right():
    assert graded([], []).grade == "A"
    assert graded([NAN], [NAN]).grade == "-"
    assert Verdict("-").ok
    assert Verdict("-").verdict == "pass"


MISFITS = [
    ([1.0, 2.0], "`y` is a list, want an array"),
    (None, "`y` is a NoneType, want an array"),
    (np.float32(1), "`y` is a float32, want an array"),
    (np.ones(3, SINGLE), "`y` has shape (3,), want (2,)"),
    (np.ones((2, 1), SINGLE), "`y` has shape (2, 1), want (2,)"),
    (np.ones(2, np.float16), "`y` has the narrower type float16, want float32"),
    (np.ones(2, np.complex64), "`y` has type complex64, want float32"),
    (np.ones(2, int), "`y` has type int64, want float32"),
    (np.ones(2, bool), "`y` has type bool, want float32"),
    (np.array([1, 1], object), "`y` has type object, want float32"),
]


@pytest.mark.parametrize(("actual", "message"), MISFITS, ids=[m for _, m in MISFITS])
def test_what_cannot_be_compared_is_wrong_and_says_why(actual, message):
    verdict = compare(actual, gauge(np.ones(2)), SINGLE)
    assert (verdict.grade, verdict.message) == ("F", message)


def test_a_real_answer_to_a_complex_question_is_wrong():
    kind = np.dtype("complex64")
    verdict = compare(np.ones(2, np.float64), gauge(np.ones(2)), kind)
    assert verdict.message == "`y` has type float64, want complex64"


def test_a_wider_type_is_right_with_a_note():
    verdict = compare(np.ones(2), gauge(np.ones(2)), SINGLE, name="x")
    assert (verdict.grade, verdict.notes) == ("A", ("`x` is float64, wider than float32",))


def test_classes_are_finite_infinite_and_nan_and_infinity_wins():
    x = np.array([1.0, INF, -INF, NAN])
    assert kind_of(x).tolist() == [0, 1, 1, 2]
    z = np.array([1j, complex(NAN, 1), complex(1, NAN), complex(NAN, INF), complex(-INF, 0)])
    assert kind_of(z).tolist() == [0, 2, 2, 1, 1]
    assert kind_of(np.float32(1)) == 0


CLASSES = [(1.0, "finite"), (INF, "infinite"), (NAN, "NaN")]


@pytest.mark.parametrize(("got", "got_class"), CLASSES)
@pytest.mark.parametrize(("want", "want_class"), CLASSES)
def test_nan_and_infinity_are_compared_by_class(got, got_class, want, want_class):
    verdict = graded([0.0, got], [0.0, want])
    same = got_class == want_class
    assert verdict.ok == same
    expected = f"worst y[1]: got {got:.6g} ({got_class}), want {want_class}"
    assert verdict.message.partition(";")[0] == ("" if same else expected)


@pytest.mark.parametrize("distance", [1e-6, 1e-12, 1e-20])
def test_a_wrong_quotient_beside_a_pole_is_wrong_at_every_distance(distance):
    v, w, z = (np.array([x], np.complex64) for x in (1, 0, distance))
    right = judge(CAUCHY_KERNEL, CAUCHY_KERNEL.reference, v, w, z)
    wrong = judge(CAUCHY_KERNEL, lambda *x: CAUCHY_KERNEL.reference(*x) * np.float32(1.5), v, w, z)
    assert right.grade == "A"
    assert not wrong.ok


def test_the_sign_of_infinity_counts_for_real_results():
    assert graded([INF], [INF]).ok
    assert not graded([INF], [-INF]).ok


@pytest.mark.parametrize("large", [{"peak": 2 * MAX / HEADROOM}, {"product": 2 * MAX / HEADROOM}])
def test_a_case_that_may_overflow_on_the_way_is_not_judged(large):
    product = large.pop("product", 0.0)
    verdict = compare(np.ones(1, SINGLE), gauge([7.0], **large), SINGLE, product=product)
    assert verdict.grade == "-"
    assert verdict.notes == ("not judged: intermediate results may overflow",)
    inside = compare(np.ones(1, SINGLE), gauge([7.0]), SINGLE, product=MAX / HEADROOM)
    assert inside.grade == "F"


def test_where_overflow_is_judged_beyond_the_largest_number_is_infinite():
    wanted = gauge([2 * MAX, 1.0, MAX / 2, -4 * MAX], peak=4 * MAX)

    def verdict(*actual):
        with np.errstate(over="ignore"):
            return compare(np.array(actual, SINGLE), wanted, SINGLE, overflow=True)

    assert verdict(INF, 1, MAX / 2, -INF).grade == "A"
    assert verdict(INF, 1, INF, -INF).ok
    assert verdict(INF, 1, NAN, -INF).ok
    assert not verdict(MAX, 1, 1, -INF).ok
    assert not verdict(INF, 1, 1, INF).ok
    assert not verdict(INF, 1, 1, NAN).ok
    assert not verdict(INF, 2, 1, -INF).ok
    assert not verdict(INF, INF, 1, -INF).ok


def test_where_overflow_is_judged_nan_is_still_due_where_it_is_due():
    a, b = np.full((9, 2), 1e6, SINGLE), np.ones((9, 2), SINGLE)
    b[0, 1] = NAN
    (wanted,) = expect(LINEAR_SCAN, [a, b])
    x = linear_scan(a, b)
    assert grade_outputs(LINEAR_SCAN, [a, b], (x,), (wanted,), overflow=True).ok
    x[:, 1] = 5.0
    assert not grade_outputs(LINEAR_SCAN, [a, b], (x,), (wanted,), overflow=True).ok


def test_the_worst_verdict_decides_and_notes_are_kept_once():
    verdicts = [
        Verdict("-", notes=("n",)),
        Verdict("A", 9.0),
        Verdict("B", 20.0, notes=("m", "n")),
        Verdict("C", 30.0),
        Verdict("C", 40.0),
        Verdict("F", 25.0),
    ]
    for count, decisive in ((1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (6, 5)):
        chosen = worst_of(iter(verdicts[:count]))
        assert (chosen.grade, chosen.ratio) == (verdicts[decisive].grade, verdicts[decisive].ratio)
    assert worst_of(verdicts).notes == ("n", "m")


def test_an_exception_is_an_error_and_a_refusal_is_wrong():
    assert Verdict("F", error=True).verdict == "error"
    assert wrong("why") == Verdict("F", INF, 0.0, "why")
    assert str(Verdict("B", 20.0, message="there")) == "grade B   ratio 20 (allowed 16)   there"


def test_another_number_of_outputs_is_wrong():
    arrays = scans("float32")
    gauged = expect(LINEAR_SCAN, arrays)
    x = linear_scan(*arrays)
    assert grade_outputs(LINEAR_SCAN, arrays, (x,), gauged).ok
    verdict = grade_outputs(LINEAR_SCAN, arrays, (x, x), gauged)
    assert verdict.message == "returned 2 outputs, want 1 outputs"
    assert (
        grade_outputs(LINEAR_SCAN, arrays, [x], gauged).message == "returned list, want 1 outputs"
    )


def test_no_outputs_at_all_are_wrong():
    arrays = scans("float32")
    verdict = grade_outputs(LINEAR_SCAN, arrays, None, expect(LINEAR_SCAN, arrays))
    assert (verdict.grade, verdict.message) == ("F", "returned NoneType, want 1 outputs")
