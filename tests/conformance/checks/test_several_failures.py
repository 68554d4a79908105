"""Distinct failures of a check are listed apart; figures are those of the worst case drawn."""

import json
import math

import jsonschema
import numpy as np
import pytest
from judging import judged, plugin, run, scan, shrunk

from refssm.conformance.calling.candidate import without_result
from refssm.conformance.calling.one_call import Outcome
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.cases.drawing import cases
from refssm.conformance.checks.conduct.arguments import _about
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.checks.piece import Piece
from refssm.conformance.checks.sweep import sweep, sweep_piece
from refssm.conformance.checks.swept import Failure, distinct
from refssm.conformance.judging.result import Also
from refssm.conformance.judging.verdict import Verdict, worst_of, wrong
from refssm.conformance.report import lines, records
from refssm.conformance.report.page import Shown, page
from refssm.conformance.report.verdict import verdict_of
from refssm.scan import LINEAR_SCAN


def schema():
    from importlib.resources import files

    told = files("refssm.conformance.report").joinpath("results.schema.json").read_text("utf-8")
    return jsonschema.Draft202012Validator(json.loads(told))


def raising_and_wrong(a, b):
    """Raises for three channels, and is wrong after step 64, the more the longer the input is."""
    if b.shape[-1] == 3:
        raise KeyError("three channels")
    x = scan(a, b)
    x[..., 64:, :] *= 1 + 0.1 * (x.shape[-2] - 64)
    return x


def one(function, *checks, **how):
    how = {"shrink": True, "profile": "default", "types": ("float32",), **how}
    (result,) = judged("linear_scan", function, *checks, **how)
    return result


@pytest.fixture(scope="module")
def both():
    return one(raising_and_wrong, "value")


def test_what_raises_and_what_is_wrong_are_listed_apart(both):
    assert (both.verdict, both.grade, both.kind) == ("wrong", "F", "values of `x`")
    (other,) = both.also
    assert (other.verdict, other.kind) == ("error", "raised KeyError")
    assert other.message.startswith("raised KeyError: 'three channels'")
    assert "l=1 n=3" in other.smallest
    assert "n=3" not in both.smallest
    assert 0 < both.failing < both.examples
    assert 0 < other.failing < both.examples


def test_ratio_and_bits_are_those_of_the_worst_case_drawn(both):
    assert both.ratio > both.smallest_ratio > both.allowed
    assert both.bits < both.smallest_bits
    told = lines.below(both)
    smallest = next(line for line in told if line.startswith("smallest: "))
    figures = f"{lines.ratio(both.smallest_ratio)}, {math.floor(both.smallest_bits)} bits"
    assert smallest.endswith(f"({figures})")
    start = f"also error (raised KeyError) in {both.also[0].failing} of {both.examples}: "
    begins = {line.partition(" raised KeyError: ")[0] for line in told}
    assert start.replace(" (raised KeyError)", "").rstrip() in begins


def test_json_and_page_show_every_failure(both):
    more = {"config": None, "interrupted": False, "known_failures": None, "complaints": []}
    told = json.loads(records.document([both], 0, "default", **more))
    schema().validate(told)
    assert told["schema"] == records.SCHEMA == 3
    assert [also["kind"] for also in told["results"][0]["also"]] == ["raised KeyError"]
    shown = page(verdict_of([both]), [both], ["here   profile default"], 1.0, {0: Shown()})
    assert "Another failure" in shown
    assert "three channels" in shown


@pytest.mark.long
def test_failures_of_two_outputs_are_distinct():
    def halves(dx, a, b):
        da, db = LINEAR_SCAN.bare_vjp(dx, a, b)
        return (2 * da, db) if b.shape[-2] % 2 else (da, 2 * db)

    result = one(scan, "gradient", vjp=halves)
    kinds = {result.kind, *(also.kind for also in result.also)}
    assert kinds == {"values of `da`", "values of `db`"}


def test_without_shrinking_the_first_failure_ends_the_check():
    result = one(raising_and_wrong, "value", shrink=False)
    assert result.failing == 1
    assert result.also == ()


def test_shrinking_never_crosses_into_another_failure():
    def three(case):
        if case.sizes["l"] < 4:
            return Verdict("F", message=f"raised E{case.sizes['l']}: no", error=True)
        if case.sizes["l"] > 200:
            return Verdict("C", 50.0, 3.0, "digits", kind="values of `x`")
        return wrong("shape", kind="shape or type of `x`") if case.sizes["n"] > 30 else Verdict("A")

    for seed in range(4):
        found = sweep(Drawing(cases(LINEAR_SCAN, "float32")), three, count=40, seed_=seed)
        assert len(found.failures) > 1
        for number, failure in enumerate(found.failures):
            smallest = shrunk(found, three, number)
            assert smallest.verdict.failure == failure.verdict.failure
            assert three(smallest.case) == smallest.verdict


def test_a_case_that_fails_in_another_way_in_each_process_keeps_its_first_failure():
    case = ordinary_case(LINEAR_SCAN, "float32")
    drawing = Drawing(lambda draw: case)  # the same in each piece
    kinds = {0: "", 10: "a", 20: "b"}

    def passes(case):
        return Verdict("A")

    def judged_elsewhere(part):
        piece = sweep_piece(drawing, passes, count=30, seed_=1, part=part, several=True)
        ((key, _),) = piece
        return Piece(((key, wrong("no", kind=kinds[part]) if kinds[part] else Verdict("A")),))

    found = sweep(drawing, passes, count=30, seed_=1, ready=judged_elsewhere)
    (failure,) = found.failures
    assert failure.verdict == failure.smallest == wrong("no", kind="a")
    assert failure.cases == 2


def test_at_most_three_failures_are_listed_the_worst_first():
    def of_size(case):
        n = case.sizes["l"] % 5
        return wrong(f"kind {n}", kind=f"{n}") if n else Verdict("C", 20.0, 5.0, kind="digits")

    found = sweep(Drawing(cases(LINEAR_SCAN, "float32")), of_size, count=40, seed_=1)
    assert len(found.failures) == 3
    assert {failure.verdict.verdict for failure in found.failures} == {"wrong"}


def test_an_inaccurate_value_beside_a_wrong_one_is_the_same_failure():
    told = [
        Verdict("C", 50.0, 3.0, kind="values of `x`"),
        Verdict("F", 9.0, 3.0, kind="values of `x`"),
        Verdict("F", 99.0, 3.0, kind="values of `x`"),
        Verdict("F", message="raised X: no", error=True),
        Verdict("F", message="raised X: never", error=True),
    ]
    found = distinct([Failure(0, str(i), v, v) for i, v in enumerate(told)])
    assert [(f.verdict.verdict, f.cases, f.key) for f in found] == [
        ("wrong", 3, "1"),
        ("error", 2, "3"),
    ]
    assert found[0].verdict.ratio == 99.0


def test_a_call_that_ends_the_process_ends_the_search():
    def dying(case):
        return Verdict("F", message="killed the process by SIGSEGV", error=True, died=True)

    assert sweep(Drawing(cases(LINEAR_SCAN, "float32")), dying, count=20, seed_=1).examples == 1


@pytest.mark.parametrize(
    ("outcome", "died", "error"),
    [
        (Outcome("crashed", message="killed the process by SIGSEGV"), True, True),
        (Outcome("hung", message="did not return within 60 s"), True, True),
        (Outcome("raised", message="raised ValueError: no"), False, True),
        (Outcome("raised", message="ran out of the device's memory: 2 GiB"), False, True),
        (Outcome("raised", message="ended with exit code 1"), False, True),
        (Outcome("malformed", message="returned a list"), False, False),
    ],
)
def test_only_a_call_that_ended_its_process_is_not_tried_again(outcome, died, error):
    verdict = without_result(outcome)
    assert (verdict.died, verdict.error, verdict.ok) == (died, error, False)
    for changed in (worst_of([verdict, Verdict("A")]), _about("negative strides: ", verdict)):
        assert changed.died == died
        assert changed.failure == verdict.failure
    swept = sweep(Drawing(cases(LINEAR_SCAN, "float32")), lambda _: verdict, count=9, seed_=1)
    assert (swept.examples == 1) == died


def test_an_only_that_raises_does_not_end_the_search():
    def lacks_a_key(x):
        return {"b": x["b"]} if x["b"].shape[-1] == 3 else x

    result = one(scan, "value", only=lacks_a_key)
    assert result.message == "`only` raised KeyError: 'a'"
    assert 1 < result.failing < result.examples


def test_views_that_are_refused_keep_the_kind_of_their_failure():
    def contiguous(a, b):
        if min(b.strides, default=1) < 0:
            raise ValueError("negative strides")
        return scan(a, b)

    result = one(contiguous, "strides")
    assert result.kind == "raised ValueError"
    assert ": raised ValueError: negative strides" in result.message


def test_the_search_for_other_failures_ends_with_the_piece_if_no_more_are_wanted():
    drawing = Drawing(cases(LINEAR_SCAN, "float32"))
    found = [sweep(drawing, lambda case: wrong(""), count=30, seed_=1, more=k) for k in (1, 11, 40)]
    assert [one.examples for one in found] == [10, 20, 30]


def test_what_fails_in_one_type_is_looked_for_in_fewer_cases_of_the_next():
    how = {"types": ("float32", "float64"), "shrink": True, "profile": "default"}
    first, second = judged("linear_scan", lambda a, b: 2 * scan(a, b), "value", **how)
    assert (first.examples, second.examples) == (25, 10)
    assert first.smallest == second.smallest


def test_what_fails_in_a_later_type_only_is_looked_for_in_all_its_cases():
    def wrong_in_double(a, b):
        return (1 + (b.dtype == np.float64)) * scan(a, b)

    how = {"types": ("float32", "float64"), "shrink": True, "profile": "default"}
    first, second = judged("linear_scan", wrong_in_double, "value", **how)
    assert (first.verdict, second.verdict) == ("pass", "wrong")
    assert second.examples == 40


@pytest.mark.long
def test_an_error_that_is_as_large_in_a_wider_type_is_wrong_not_inaccurate():
    def nearly(a, b):
        return scan(a, b) * np.asarray(1 + 2.0**-12, b.dtype)

    how = {"shrink": True, "profile": "default", "types": ("float32", "float64")}
    result, _ = judged("linear_scan", nearly, "value", **how)
    assert "equally wrong in float64" in result.hint
    assert (result.verdict, result.grade) == ("wrong", "F")


def test_a_line_of_another_failure_names_its_kind_once():
    also = Also("wrong", "values of `x`", "F", 9.0, 1.0, 3, "worst x[0]: got 1, want 2", "l=1")
    (result,) = judged("linear_scan", scan, "zero")
    assert lines.also(result, also)[0].startswith("also wrong (values of `x`) in 3 of ")


QUICK = ("--profile", "quick")


def test_a_function_that_writes_to_its_state_is_a_failure_of_the_check_state(tmp_path, capfd):
    plugin(
        tmp_path,
        "import refssm\n\n\ndef hope_stream_stateful(h, dt, u, x0):\n"
        "    x0 += 1\n    return refssm.hope_stream_stateful(h, dt, u, x0)\n",
    )
    code, text, _ = run(capfd, "verify", tmp_path / "my_ops.py", "--check", "state", *QUICK)
    assert code == 1
    assert "the call wrote to its input `x0`" in text
