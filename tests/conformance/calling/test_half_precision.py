"""Sixteen-bit types: judged if declared, here in float16; test_bfloat16.py has the other."""

from functools import partial

import numpy as np
import pytest
from judging import judged, plugin, rounded_to, run, scan, verdicts

from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.report import lines
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM
from refssm.testing import Budget, check, implements

float16 = partial(judged, "linear_scan", dtypes=("float16",))
SEEN = set()


def watching(a, b):
    SEEN.update((x.dtype.name, x.ndim) for x in (a, b))
    return scan(a, b)


def test_a_numpy_scan_is_judged_in_float16_by_all_laws_but_two():
    results = float16(watching, profile="default")
    assert {r.dtype for r in results} == {"float16"}
    assert {name for name, _ in SEEN} == {"float16"}
    laws = {"value", "nan", "prefix", "zero", "causal", "batch"}
    conduct = {"copies", "repeat", "strides", "readonly", "unchanged", "alias", "shapes", "empty"}
    assert verdicts(results) == dict.fromkeys(laws | conduct, "pass")
    assert [r.message for r in results if r.verdict == "skipped"] == ["needs linear_scan_from"]
    assert "10 bits of 11" in lines.facts(results[0])  # the largest error is 1.1 roundings


@pytest.mark.long
def test_sixteen_bits_are_judged_only_where_they_are_declared():
    assert {r.dtype for r in judged("linear_scan", scan, "value", profile="default")} == {
        "float32",
        "float64",
        "complex64",
        "complex128",
    }
    both = judged("linear_scan", scan, "value", profile="default", dtypes=("float16", "complex128"))
    assert [r.dtype for r in both] == ["complex128", "float16"]


@pytest.mark.parametrize("op", [LINEAR_SCAN, LINEAR_SCAN_FROM], ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_arrays_of_a_case_hold_numbers_of_its_type(op, dtype):
    case = ordinary_case(op, dtype)
    assert case.type.name == dtype
    for a in case.arrays:
        assert a.dtype == np.float32
        assert np.array_equal(case.type.rounded(a.astype(float), real=True), a)
        assert not np.array_equal(a, np.round(a))


def in_bits(bits, a, b):
    x, state = np.empty_like(b), np.zeros_like(b[..., 0, :])
    for k in range(b.shape[-2]):
        x[..., k, :] = state = rounded_to(bits, a[..., k, :] * state + b[..., k, :])
    return x


def losing_the_carry(a, b):
    x = scan(a, b)
    x[..., 64:, :] = scan(a[..., 64:, :], b[..., 64:, :])
    return x


def test_few_bits_and_a_wrong_formula_fail_in_float16():
    (right,) = float16(partial(in_bits, 11), "value")
    (coarse,) = float16(partial(in_bits, 6), "value")
    (lost,) = float16(losing_the_carry, "value")
    assert right.verdict == "pass"
    assert coarse.failed
    assert lost.verdict == "wrong"
    assert "worst x[" in lost.message
    assert not coarse.hint  # rounding to six bits does not flush subnormal numbers
    assert not lost.hint


def test_a_float16_gradient_is_judged_too():
    (right,) = float16(scan, "gradient", vjp=LINEAR_SCAN.bare_vjp)
    (wrong,) = float16(scan, "gradient", vjp=lambda *x: LINEAR_SCAN.bare_vjp(*x)[::-1])
    assert (right.verdict, right.dtype) == ("pass", "float16")
    assert wrong.failed


def accumulating(a, b):
    """Computes in float32 and returns the type of the arguments."""
    return scan(a.astype(np.float32), b.astype(np.float32)).astype(b.dtype)


@implements("linear_scan_from", dtypes="float16", accuracy=Budget(computes="float32"))
def accumulating_from(a, b, x0):
    wide = (x.astype(np.float32) for x in (a, b, x0))
    return LINEAR_SCAN_FROM.reference(*wide).astype(b.dtype)


def test_a_kernel_that_accumulates_in_float32_is_held_to_it():
    given = {"accuracy": Budget(computes="float32"), "profile": "default"}
    results = float16(accumulating, **given)
    assert set(verdicts(results).values()) == {"pass"}
    assert "bits of 24" in lines.facts(results[0])
    assert float16(scan, "value", **given)[0].failed


def test_the_state_a_kernel_hands_on_is_rounded_to_its_type():
    given = {"accuracy": Budget(computes="float32"), "dtypes": "float16", "checks": ("split",)}
    check("linear_scan", accumulating, profile="quick", **given)
    with pytest.raises(AssertionError, match="FAIL linear_scan/split"):
        check("linear_scan", one_too_large, profile="quick", **given)


def one_too_large(a, b):
    """Wrong: no scan from any of these states gives this."""
    return accumulating(a, b) + np.float16(1)


def coarse_below_the_normal_numbers(a, b):
    """Wrong: below 2^-14 multiples of 2^-22, where float16 has multiples of 2^-24."""
    x = accumulating(a, b)
    return np.where(np.abs(x) < 2.0**-14, np.rint(x * 2.0**22) / 2.0**22, x).astype(b.dtype)


def test_subnormal_results_of_an_inside_in_float32_are_rounded_to_the_type():
    fading = {"a": np.full((40, 1), 0.4, np.float16), "b": np.eye(40, 1, dtype=np.float16)}
    given = {"accuracy": Budget(computes="float32"), "only": lambda case: fading}
    (right,) = float16(accumulating, "value", **given)
    (wrong,) = float16(coarse_below_the_normal_numbers, "value", **given)
    assert (right.verdict, right.grade) == ("thin", "A")  # its cases have one length
    assert wrong.failed


def test_a_wider_result_is_held_to_its_own_rounding_and_noted():
    def wide(a, b):
        return scan(a.astype(np.float32), b.astype(np.float32))

    (result,) = float16(wide, "value")
    assert result.verdict == "pass"
    assert "`x` is wider than float16" in result.notes


NO_ARRAYS = {
    "a list": (lambda a, b: scan(a, b).tolist(), "`x` is a list, want an array"),
    "integers": (lambda a, b: scan(a, b).astype(int), "`x` is an int64 array, want an array"),
    "complex": (lambda a, b: scan(a, b) + 0j, "`x` is a complex64 array, want an array"),
}


@pytest.mark.parametrize("what", NO_ARRAYS)
def test_a_result_that_is_no_float16_is_told(what):
    function, sentence = NO_ARRAYS[what]
    (result,) = float16(function, "value")
    assert result.verdict == "wrong"
    assert result.message == sentence


@pytest.mark.long
def test_asking_for_float16_on_the_command_line_judges_in_it(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    text = "import numpy as np\ndef linear_scan(a, b):\n    assert a.dtype == 'f2'\n    return {}\n"
    arguments = ["--dtype", "float16", "--check", "value"]
    wrong = plugin(tmp_path, text.format("a * b"))
    result, out, _ = run(capfd, "verify", wrong, *arguments)
    assert result == 1
    assert "FAIL linear_scan/value[float16]" in out
    again = next(line for line in out.splitlines() if "again: " in line).split("refssm ")[1]
    result, again, _ = run(capfd, *again.split())
    assert result == 1
    worst = next(line for line in out.splitlines() if line.startswith("  worst"))
    assert worst in again
