"""`--time` and `--explain`: what ends by the clock, and what the report says of it."""

import json
import time
from types import SimpleNamespace

import pytest
from judging import plugin, run, scan

from refssm.command import options
from refssm.command.spoken import JSON, QUIET, USUAL, Report
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.drawing import cases
from refssm.conformance.checks.checks import PROFILES, checks_of
from refssm.conformance.checks.conduct.repetition import SHORT
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.checks.sweep import sweep
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.running import patience
from refssm.conformance.running.patience import Clock, OuterStop
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.scan import LINEAR_SCAN

CHECKS = checks_of(LINEAR_SCAN, PROFILES["default"], ["float32", "float64"], vjp=True)


def test_the_option_and_the_setting_have_the_same_usual_value():
    assert Settings().explain == options.EXPLAIN == patience.EXPLAIN


def test_a_stop_acts_only_once_its_seconds_are_over():
    stop = OuterStop(0.05)
    assert not stop()
    time.sleep(0.06)
    assert stop()
    assert stop.acted
    assert not OuterStop()()


def test_a_value_gets_four_times_the_share_of_a_law_and_no_check_gets_more_than_is_left():
    clock = Clock(100.0)
    value, law = CHECKS[0], next(c for c in CHECKS if c.name == "causal")
    assert clock.share([value, law]) == pytest.approx(80, abs=1)
    assert clock.share([law]) == pytest.approx(100, abs=1)
    clock.parts, clock.places = 2, 3  # two implementations here, and two other targets
    assert clock.share([law]) == pytest.approx(25, abs=1)
    assert Clock().share([value]) == patience.UNLIMITED


def test_an_explanation_gets_half_of_what_is_left_and_never_less_than_nothing():
    assert Clock(100.0).of_explanation == pytest.approx(50, abs=1)
    assert Clock(0.0).of_explanation == 0
    assert Clock().of_explanation == patience.UNLIMITED


def judged_for(seconds, function, **how):
    """The results of a scan that is judged for so many seconds, by check and type."""
    session = Session(InProcess([Found(LINEAR_SCAN, function, None)]), "here", Settings(**how))
    session.clock = Clock(seconds)
    return {f"{r.check}[{r.dtype}]": r for r in results_of(session)}


def slow(a, b):
    """A right scan that takes its time."""
    time.sleep(0.02)
    return scan(a, b)


@pytest.mark.long
def test_a_check_whose_share_is_over_says_after_how_many_cases_and_others_are_skipped():
    found = judged_for(1.5, slow, folder=None)
    value = found["value[float32]"]
    assert value.verdict == "pass"
    assert 1 <= value.examples < 25
    assert f"ended after {value.examples} of 28 cases" in value.notes[-1]
    assert "--time" in value.notes[-1]
    left = [r for r in found.values() if "not begun" in r.message]
    assert all(r.verdict == "skipped" for r in left)
    assert {r.examples for r in found.values() if r not in left} & {1, 2, 3, 4}


def test_equal_calls_of_a_longer_input_are_left_out_where_the_share_is_over():
    lengths = set()

    def slow(a, b):
        lengths.add(b.shape[-2])
        time.sleep(0.005)
        return scan(a, b)

    told = judged_for(0.05, slow, only_checks=("repeat",), types=("float32",), folder=None)
    assert told["repeat[float32]"].verdict == "pass"
    assert told["repeat[float32]"].notes == (SHORT,)
    assert 257 not in lengths
    judged_for(patience.UNLIMITED, slow, only_checks=("repeat",), types=("float32",), folder=None)
    assert 257 in lengths


def test_a_piece_that_the_clock_cut_is_not_recorded():
    kept = []
    drawing = Drawing(cases(LINEAR_SCAN, "float32"))
    calls = iter([False] * 12 + [True] * 99)
    how = {"count": 25, "seed_": 1, "keep": lambda part, cases: kept.append((part, len(cases)))}
    swept = sweep(drawing, lambda case: Verdict("A"), over=lambda: next(calls), **how)
    assert swept.cut
    assert swept.examples == 13
    assert kept == [(0, 10)]


def test_once_the_time_is_over_no_check_begins_but_the_first():
    found = judged_for(0.0, scan, folder=None, only_checks=("value",))
    first, *others = found.values()
    assert (first.verdict, first.examples) == ("pass", 1)
    assert others
    assert {r.verdict for r in others} == {"skipped"}
    assert {r.message for r in others} == {"not begun: the 0 s of --time were over"}


@pytest.mark.long
def test_a_failure_that_is_not_explained_is_a_failure_and_says_so():
    def late(a, b):
        x = scan(a, b)
        return x + (x.shape[-2] > 64)

    how = {"folder": None, "only_checks": ("value",), "types": ("float32",), "diagnose": True}
    told, untold = (judged_for(9e9, late, **how, explain=s)["value[float32]"] for s in (60.0, 0.0))
    assert told.verdict == untold.verdict == "wrong"
    assert "l=65 n=1" in told.smallest
    assert "--explain" not in "".join(told.notes)
    assert "l=65 n=1" not in untold.smallest
    assert "not made smaller further, the 0 s of --explain are over" in untold.notes


@pytest.mark.long
def test_the_options_reach_the_run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    file = plugin(tmp_path, "def linear_scan(a, b):\n    return b + 1\n")
    call = ("verify", file, "--json", "--no-config", "--check", "value", "--dtype", "float32")
    result, out, _ = run(capfd, *call, "--explain", "0")
    assert result == 1
    (told,) = json.loads(out)["results"]
    assert any("--explain" in note for note in told["notes"])
    result, out, _ = run(capfd, *call, "--time", "1")
    assert result == 1
    assert json.loads(out)["results"][0]["verdict"] == "wrong"
    result, _, err = run(capfd, *call, "--time", "0")
    assert result == 4
    assert "--time" in err


def test_a_line_a_minute_goes_to_standard_error_where_no_bar_is_shown(capsys, monkeypatch):
    said = {}
    for voice in (USUAL, JSON, QUIET):
        bar = SimpleNamespace(shown=False, tick=lambda *_: None)
        report = Report(voice, bar)
        now = report.began
        for seconds in (30, 61, 70, 130):
            at = now + seconds
            monkeypatch.setattr("refssm.command.spoken.time.monotonic", lambda at=at: at)
            report.tick("linear_scan/value[float32]", 3, 25)
        said[voice] = capsys.readouterr().err.splitlines()
        monkeypatch.undo()
    line = "refssm: {} s: linear_scan/value[float32] 3/25"
    assert said[USUAL] == said[JSON] == [line.format(61), line.format(130)]
    assert said[QUIET] == []


def test_a_terminal_has_the_bar_and_no_such_line(capsys, monkeypatch):
    report = Report(USUAL, SimpleNamespace(shown=True, tick=lambda *_: None))
    now = report.began
    monkeypatch.setattr("refssm.command.spoken.time.monotonic", lambda: now + 100)
    report.tick("linear_scan/value[float32]", 3, 25)
    assert capsys.readouterr().err == ""
