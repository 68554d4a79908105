"""Sentences that were untrue of a program, and what is said of it now."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import duality_programs as duality
import numpy as np
import other_programs as other
import pytest
from reporting import causes, first_line, refused, results, rounded_to_8_bits

from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.diagnosis import likeness, pattern, suspects
from refssm.conformance.diagnosis.place import _block, _channel, _only_last_step
from refssm.conformance.judging.result import Explained
from refssm.conformance.report.verdict import headline, verdict_of
from refssm.testing import Budget

pytestmark = pytest.mark.usefixtures("their_warnings_are_not_ours")
SUMS = {"dtypes": ("float16",), "accuracy": Budget(computes="float32"), "types": ("float16",)}
SCAN = operator_named("linear_scan").reference


def told(name, function, **how):
    return first_line(name, function, "value", **({"types": ("float32",)} | how))


@pytest.mark.long
def test_without_its_arithmetic_a_bug_would_explain_every_sum_in_float16(monkeypatch):
    monkeypatch.setattr(likeness, "worker_of", lambda bug, candidate: InProcess([bug.found()]))
    named = causes("linear_scan", other.sums_of(None), "nan", **SUMS)
    assert "the carry lost" in named["nan[float16]"]


def dropping(size):
    """A scan in blocks to which the state of all blocks but the last is lost."""

    def linear_scan(a, b):
        x = np.empty(b.shape, np.result_type(a, b))
        start = np.zeros(x[..., :1, :].shape, x.dtype)[..., 0, :]
        for s in range(0, b.shape[-2], size):
            h, local = start, 0 * start
            for k in range(s, min(s + size, b.shape[-2])):
                h, local = (a[..., k, :] * v + b[..., k, :] for v in (h, local))
                x[..., k, :] = h
            start = local
        return x

    return linear_scan


@pytest.mark.long
@pytest.mark.parametrize("size", [24, 32])
def test_blocks_whose_second_border_is_wrong_are_said_beside_those_of_twice_the_size(size):
    line = told("linear_scan", dropping(size))
    assert f"from one block of {2 * size} to the next" in line
    assert f"or from the second of {size}, " in line


def test_a_first_wrong_step_is_no_rule_where_a_longer_case_passes():
    late = [np.arange(l) >= 1 for l in (129, 200, 256)]
    assert _block(late, 1, False) == "the first wrong step is step 1, whatever the length"
    assert _block(late, 128, False) == ""


@pytest.mark.long
def test_an_error_beyond_a_length_is_not_said_to_be_of_any_length():
    def beyond_128(a, b):
        x = SCAN(a, b)
        late = (np.arange(b.shape[-2]) >= 1)[:, None] & (b.shape[-2] > 128)
        return np.where(late, x * x.dtype.type(1.2), x)

    assert "whatever" not in told("linear_scan", beyond_128)


@pytest.mark.long
def test_a_carry_rounded_to_bfloat16_is_not_called_a_wrong_formula():
    def rounded_every_16_steps(a, b):
        x = np.empty(b.shape, np.result_type(a, b))
        h = np.zeros(x[..., :1, :].shape, x.dtype)[..., 0, :]
        for k in range(b.shape[-2]):
            h = a[..., k, :] * (h if k % 16 else rounded_to_8_bits(h)) + b[..., k, :]
            x[..., k, :] = h
        return x

    how = {"types": ("float32", "float64"), "dtypes": ("float32", "float64")}
    failure, *_ = refused("linear_scan", rounded_every_16_steps, "value", **how)
    assert failure.verdict == "inaccurate"
    assert failure.hint == "equally wrong in float64"


@pytest.mark.long
def test_a_kept_argument_of_one_type_may_be_another_path():
    kept, kernel = {}, operator_named("diagonal_kernel_zoh").reference

    def stale(w, B, C, dt, *, l):
        if w.dtype == np.complex64:
            w = kept.setdefault((w.shape, l), w.copy())
        return kernel(w, B, C, dt, l=l)

    how = {"types": ("complex64", "complex128")}
    failure, *_ = refused("diagonal_kernel_zoh", stale, "value", **how)
    assert failure.hint in ("", "right in complex128: complex64 has too few digits or too small a"
                            " range, or takes another path")  # fmt: skip


def twice_in_the_last_case():
    """A scan whose outputs are twice the right ones in one case only."""
    calls = set()

    def linear_scan(a, b):
        x = SCAN(a, b)
        calls.add(b.tobytes())
        return 2 * x if b.shape[-2] == 5 else x

    return linear_scan


@pytest.mark.long
def test_a_factor_of_some_cases_is_not_that_of_every_entry():
    assert "every entry" not in told("linear_scan", twice_in_the_last_case())


@pytest.mark.long
def test_one_case_shows_no_pattern(monkeypatch):
    (failure,) = refused("linear_scan", lambda a, b: 3 * SCAN(a, b), "value", types=("float32",))
    assert failure.cause == "every entry is 3 times the right value"
    monkeypatch.setattr(pattern, "CASES", 1000)
    (failure,) = refused("linear_scan", lambda a, b: 3 * SCAN(a, b), "value", types=("float32",))
    assert failure.cause == ""


def output(size, *places):
    """An output with wrong entries at these places of its axis n."""
    bad = np.broadcast_to(np.isin(np.arange(size), places), (7, size))
    seen: Any = SimpleNamespace(dims=("l", "n"), bad=bad, judged=np.ones((7, size), bool))
    return seen


def test_the_wrong_one_of_two_entries_shows_no_pattern_of_an_axis():
    assert _channel([output(2, 1)] * 9, "n") == ""
    assert _channel([output(5, 1, 2, 3, 4)] * 2, "n") == ""
    told = "all entries of axis n but the first are wrong"
    assert _channel([output(2, 1), output(5, 1, 2, 3, 4), output(3, 1, 2)], "n") == told


def test_a_wrong_last_step_needs_four_steps():
    assert _only_last_step([np.arange(9) == 8])
    assert not _only_last_step([np.arange(3) == 2])


@pytest.mark.long
def test_a_pattern_that_another_type_denies_is_no_first_line():
    def linear_scan(a, b):
        return 3 * SCAN(a, b) if b.dtype == np.float32 else SCAN(a, b) + 1

    came = results("linear_scan", linear_scan, "value", types=("float32", "float64"))
    assert came[0].cause == "every entry is 3 times the right value"
    assert came[1].cause != came[0].cause
    assert "every entry is 3" not in verdict_of(came).line
    alone = results("linear_scan", linear_scan, "value", types=("float32",))
    assert "every entry is 3 times the right value" in verdict_of(alone).line


@pytest.mark.long
def test_what_overflows_is_not_named_after_a_bug_that_overflows_elsewhere(monkeypatch):
    (failure,) = refused("linear_scan", _infinite_at_the_end, "value", types=("float32",))
    assert "divided" not in failure.cause


def _infinite_at_the_end(a, b):
    """Infinite in the last channel of long inputs."""
    x = SCAN(a, b).copy()
    if b.shape[-2] > 64:
        x[..., -1] = np.inf
    return x


@pytest.mark.long
def test_without_calls_afresh_zeros_would_be_a_kept_result(monkeypatch):
    monkeypatch.setattr(suspects, "always_wrong", lambda candidate, e: False)
    wrong = duality.zero_before_the_first_reset
    (failure,) = refused("ssd_recurrent_packed", wrong, "repeat", types=("float32",))
    assert failure.cause == "a result kept for all arguments but the last"


def test_lost_digits_in_both_types_are_not_said_to_be_right_in_one():
    shown = Explained("", "", 0.0, 0.0, hint="right in float64: these are rounding errors")
    grown = replace(shown, looks_like="as many digits are lost in float64: roundings that grow")
    assert grown.contradicts
    assert not shown.contradicts
    assert not replace(grown, hint="equally wrong in float64").contradicts


@pytest.mark.long
def test_of_two_calls_neither_is_said_to_be_what_is_wanted():
    def linear_scan(a, b):
        x = SCAN(a, b)
        return x * np.nan if b.shape[-2] > 40 and (b[..., 0, 0] > 0).any() else x

    failures = refused("linear_scan", linear_scan, "prefix", "causal", types=("float32",))
    told = [r.message for r in failures if "(finite)" in r.message or "(NaN)" in r.message]
    assert told
    assert all("the other call gave" in message for message in told)
    assert all("want NaN" not in message for message in told)
    assert all(headline(r) for r in failures)


@pytest.mark.long
def test_a_member_of_a_batch_is_told_by_its_number():
    def linear_scan(a, b):
        x = SCAN(a, b).copy()
        if b.ndim == 3 and len(b) > 1:
            x[-1] += 1
        return x

    (failure,) = refused("linear_scan", linear_scan, "batch", types=("float32",))
    assert failure.message.startswith(("b=1 alone: worst x[0, ", "b=2 alone: worst x[0, "))
