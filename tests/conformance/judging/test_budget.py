"""Declared accuracy: error factor, arithmetic, subnormals flushed to zero."""

from functools import partial

import numpy as np
import pytest
from judging import judged, plugin, rounded_to, run, scan

from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, grade_outputs
from refssm.conformance.report import lines
from refssm.conformance.standard import Standard
from refssm.convolution import CAUSAL_CONVOLUTION
from refssm.discretize import DISCRETIZE_BILINEAR
from refssm.testing import Budget

TINY = np.finfo(np.float32).tiny


def off_by(roundings, a, b):
    """Every result that is not an integer has this many rounding errors."""
    x = scan(a, b)
    return np.where(x == np.round(x), x, x * np.float32(1 + roundings * 2.0**-24)).astype(x.dtype)


def test_a_budget_lets_pass_what_the_usual_16_refuses_and_says_so():
    given = {"dtypes": ("float32",), "accuracy": Budget(C=64)}
    (strict,) = judged("linear_scan", partial(off_by, 40), "value", dtypes=("float32",))
    (lenient,) = judged("linear_scan", partial(off_by, 40), "value", **given)
    (beyond,) = judged("linear_scan", partial(off_by, 400), "value", **given)
    assert (strict.verdict, lenient.verdict, beyond.verdict) == ("inaccurate", "pass", "inaccurate")
    assert 16 < lenient.ratio <= 64 < beyond.ratio
    assert "(allowed 16)" in lines.facts(strict)
    assert "(allowed 64)" in lines.facts(lenient)


def multiplied_in(bits, a, b):
    """Operands and results with few bits, any exponent."""
    short = partial(rounded_to, bits)
    x, a, state = np.empty_like(b), short(a), np.zeros_like(b[..., 0, :])
    for k in range(b.shape[-2]):
        x[..., k, :] = state = short(short(a[..., k, :] * state) + short(b[..., k, :]))
    return x


@pytest.mark.parametrize(
    ("bits", "computes", "verdict"),
    [
        (11, "", "inaccurate"),
        (11, "float32", "inaccurate"),
        (11, "tf32", "pass"),
        (6, "tf32", "wrong"),
        (8, "bfloat16", "pass"),
        (3, "bfloat16", "wrong"),
    ],
)
def test_a_result_is_held_to_the_arithmetic_it_is_computed_in(bits, computes, verdict):
    given = {"dtypes": ("float32",), "accuracy": Budget(computes=computes)}
    (result,) = judged("linear_scan", partial(multiplied_in, bits), "value", **given)
    assert result.verdict == verdict
    of = {"tf32": 11, "bfloat16": 8}.get(computes, 24)
    exact = result.kind == "bits of `x`"  # of small integers, whose errors have no unit
    assert exact or f"bits of {of}" in lines.facts(result)


def in_float16(a, b):
    return scan(a.astype(np.float16), b.astype(np.float16)).astype(np.float32)


@pytest.mark.parametrize("seed", range(3))
def test_a_float32_interface_may_compute_in_float16_with_its_few_exponents(seed):
    given = {"dtypes": ("float32",), "accuracy": Budget(computes="float16"), "seed": seed}
    (result,) = judged("linear_scan", in_float16, "value", **given)
    assert result.verdict == "pass", result.message


def in_float64(a, b):
    return scan(a.astype(float), b.astype(float)).astype(np.float32)


@pytest.mark.long
@pytest.mark.parametrize("name", ["value", "additive", "prefix", "batch"])
def test_a_float32_interface_may_compute_in_float64_and_round_once(name):
    given = {"dtypes": ("float32",), "accuracy": Budget(computes="float64")}
    (result,) = judged("linear_scan", in_float64, name, **given)
    assert result.verdict == "pass", result.message
    if name == "value":
        assert [r.verdict for r in judged("linear_scan", scan, name, **given)] == ["inaccurate"]


def flushing(below, a, b):
    """Numbers below `below` are zero, as on a machine without subnormals."""
    flush = lambda x: np.where(np.abs(x) < below, 0, x).astype(np.float32)  # noqa: E731
    x, a, b, state = np.empty_like(b), flush(a), flush(b), np.zeros_like(b[..., 0, :])
    for k in range(b.shape[-2]):
        x[..., k, :] = state = flush(flush(a[..., k, :] * state) + b[..., k, :])
    return x


def test_subnormals_may_be_flushed_to_zero_where_that_is_declared():
    (declared,) = judged("linear_scan", partial(flushing, TINY), "value", ftz=True)
    (silent,) = judged("linear_scan", partial(flushing, TINY), "value")
    (too_much,) = judged("linear_scan", partial(flushing, 1e-20), "value", ftz=True)
    assert [r.failed for r in (declared, silent, too_much)] == [False, True, True]
    assert silent.hint == "passes if subnormal numbers may be flushed to zero: declare ftz=True"
    assert too_much.hint == ""


def test_an_argument_flushed_before_a_transform_is_right_where_that_is_declared():
    k = np.ones(8, np.float32)
    u, nothing = TINY / 2 * k, np.zeros_like(k)
    for ftz in (True, False):
        held = Standard.of("float32", ftz=ftz)
        (gauge,) = expect(CAUSAL_CONVOLUTION, [u, k], standard=held)
        assert compare(nothing, gauge, u.dtype, standard=held).ok == ftz


def test_a_right_hand_side_flushed_before_a_solve_is_right_where_that_is_declared():
    A, B, dt = -np.eye(2, dtype="f4"), np.full((2, 1), TINY / 8, "f4"), np.ones((), "f4")
    A_bar, B_bar = DISCRETIZE_BILINEAR.reference(A, B, dt)
    for ftz in (True, False):
        held = Standard.of("float32", ftz=ftz)
        gauged = expect(DISCRETIZE_BILINEAR, [A, B, dt], standard=held)
        outputs = (A_bar, 0 * B_bar)
        assert (
            grade_outputs(DISCRETIZE_BILINEAR, [A, B, dt], outputs, gauged, standard=held).ok == ftz
        )


def test_the_header_says_what_was_declared(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    text = """
import refssm
from refssm.testing import Budget, implements

@implements("linear_scan", dtypes="float32", accuracy=Budget(C=64, computes="tf32"), ftz=True)
def scan(a, b):
    return refssm.linear_scan(a, b)
"""
    result, out, _ = run(capfd, "verify", "-v", plugin(tmp_path, text), "--check", "value")
    assert result == 0
    told = (
        "linear_scan: computes in tf32, allowed ratio 64, subnormal numbers may be flushed to zero"
    )
    assert told in out.splitlines()
    assert "(allowed 64)" in out
    assert "24 bits" not in out


@pytest.mark.parametrize(("eps", "told"), [("1e-5", True), ("1e-6", False)])
def test_the_header_says_which_defaults_are_not_the_operators(
    eps, told, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    text = f"""
import refssm

def l2_norm(x, *, eps={eps}):
    return refssm.l2_norm(x, eps=eps)
"""
    result, out, _ = run(capfd, "verify", "-v", plugin(tmp_path, text), "--check", "value")
    assert result == 0
    words = "l2_norm: defaults of its own: eps=1e-05, not 1e-06 (cases give every keyword)"
    assert (words in out.splitlines()) == told
