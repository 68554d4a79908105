"""Cases that are declined are drawn again; a verdict on too few cases is `thin`."""

import json
from dataclasses import replace

import numpy as np
import pytest
from judging import SCAN, judged, plugin, run, scan

from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.drawing import cases
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.checks.sweep import sweep
from refssm.conformance.judging.verdict import Verdict, wrong
from refssm.conformance.report import lines
from refssm.conformance.report.verdict import verdict_of
from refssm.scan import LINEAR_SCAN
from refssm.testing import check

DECLINING = SCAN.replace(
    "    x = ", "    if b.shape[-2] > 1: raise NotImplementedError('one step')\n    x = "
)
VALUE = ("--check", "value", "--dtype", "float32", "--no-config")


@pytest.fixture(autouse=True)
def no_clock(monkeypatch):
    """The number of draws ends them, also on a busy machine."""
    monkeypatch.setattr("refssm.conformance.checks.sweep.REDRAW_SECONDS", np.inf)


def swept(judge_case, count=20, **how):
    drawing = Drawing(cases(LINEAR_SCAN, "float32"))
    return sweep(drawing, judge_case, count=count, seed_=3, redraw=True, **how)


def one_step(a, b):
    """Right for one step; declines the rest."""
    if b.shape[-2] > 1:
        raise NotImplementedError("one step")
    return b + 0 * a


def long(x):
    return x if x["b"].shape[-2] > 64 else None


def single(x):
    return x if x["b"].shape[-2] == 1 else None


def first_step(x):
    return {name: a[..., :1, :] for name, a in x.items()}


def test_declined_cases_are_drawn_again_until_the_count_is_reached():
    def half(case):
        if case.sizes["l"] > 64:
            raise Declined
        return Verdict("A")

    found = swept(half)
    assert found.declined
    assert found.judged == found.wanted == 20
    assert found.examples >= found.judged + found.declined
    assert not found.few


def test_no_more_than_twenty_times_as_many_cases_are_drawn():
    drawn = []

    def all_declined(case):
        drawn.append(str(case))
        raise Declined

    found = swept(all_declined, count=5)
    assert found.judged == 0
    assert len(drawn) == len({*drawn}) <= 20 * 5
    assert found.examples == found.declined == len(drawn)


def test_time_ends_the_draws_and_the_line_says_so(monkeypatch):
    monkeypatch.setattr("refssm.conformance.checks.sweep.REDRAW_SECONDS", 0.0)

    def nearly_all(case):
        if case.sizes["l"] > 1:
            raise Declined
        return Verdict("A")

    assert "no more draws in place of declined cases after 0 s" in swept(nearly_all).verdict.notes


def test_nothing_is_drawn_again_where_nothing_is_declined_or_something_fails():
    assert swept(lambda case: Verdict("A")).examples == 20

    def bad(case):
        if case.sizes["l"] > 64:
            raise Declined
        return wrong("always")

    found = swept(bad)
    assert found.declined
    assert found.examples == 20


@pytest.mark.parametrize("several", [True, False])
def test_a_failure_among_cases_drawn_again_ends_the_search(several):
    seen = []

    def bad_after_twenty(case):
        seen.append(case)
        if case.sizes["l"] > 64:
            raise Declined
        return wrong("late") if len(seen) > 20 else Verdict("A")

    found = swept(bad_after_twenty, several=several)
    assert found.verdict.message == "late"


@pytest.mark.long
@pytest.mark.parametrize("how", [{"only": single}, {"only": first_step}, {}])
def test_a_scan_that_is_right_for_one_step_only_is_thin(how):
    function = (lambda a, b: b + 0 * a) if how else one_step
    (result,) = judged("linear_scan", function, "value", types=("float32",), **how)
    assert (result.verdict, result.grade) == ("thin", "A")
    assert result.failed
    assert "have l=1" in result.message or "all with l=1" in result.message
    assert "--where l=1..1" in result.hint
    assert verdict_of([result]).line.startswith("THIN: linear_scan (")


def test_an_only_that_leaves_enough_cases_passes():
    (result,) = judged("linear_scan", scan, "value", types=("float32",), only=long)
    assert result.verdict == "pass"
    assert result.examples - result.declined >= 24


@pytest.mark.long
def test_a_function_that_declines_everything_is_skipped():
    (result,) = judged("linear_scan", scan, "value", types=("float32",), only=lambda x: None)
    assert (result.verdict, result.examples) == ("skipped", result.declined)


def test_a_range_of_one_length_is_not_thin():
    limited = {"where": ["l=1..1"], "types": ("float32",)}
    (result,) = judged("linear_scan", lambda a, b: b + 0 * a, "value", only=single, **limited)
    assert result.verdict == "pass"


@pytest.mark.long
def test_a_cancelling_formula_fails_behind_an_only():
    def small(x):
        return x if np.all(np.abs(x["w"] * x["dt"]) < 0.1) and np.all(x["w"] != 0) else None

    def cancelling(w, B, dt):
        decay = np.exp(dt * w)
        return decay, ((decay - 1) / w)[..., None] * B

    how = {"types": ("complex64",), "only": small}
    (result,) = judged("discretize_diagonal_zoh", cancelling, "value", **how)
    assert result.verdict == "wrong"
    assert result.kind == "values of `B_bar`"


@pytest.mark.long
def test_the_command_fails_for_thin_checks_unless_they_are_allowed(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    file = plugin(tmp_path, DECLINING)
    code, out, _ = run(capfd, "verify", file, *VALUE)
    assert code == 1
    assert "thin linear_scan/value[float32] " in out
    code, out, _ = run(capfd, "verify", file, *VALUE, "--allow-thin", "--json")
    (record,) = json.loads(out)["results"]
    assert (code, record["verdict"], record["tolerated"]) == (0, "thin", True)


@pytest.mark.long
def test_check_of_a_thin_function_is_an_assertion_error_unless_it_is_allowed():
    how = {"profile": "quick", "checks": ("value",), "only": single}
    with pytest.raises(AssertionError, match="thin linear_scan/value"):
        check("linear_scan", one_step, **how)
    check("linear_scan", one_step, **how, allow_thin=True)


@pytest.mark.long
def test_a_tolerated_thin_result_is_no_failure():
    (result,) = judged("linear_scan", one_step, "value", types=("float32",))
    assert not replace(result, tolerated=True).failed
    assert lines.word(result) == "thin"
