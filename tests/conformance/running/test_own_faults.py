"""An exception of refssm inside one check is that check's error, and costs no other result."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from judging import SCAN, judged, plugin, run, scan

from refssm.conformance.checks.conduct import arguments
from refssm.conformance.running import explaining
from refssm.conformance.running.first_calls import Probe
from refssm.conformance.running.own_faults import HINT, KIND
from refssm.conformance.spreading import processes
from refssm.testing import check

SAID = "this is a fault of refssm, please report it: IndexError: planted (test_own_faults.py:"
BOTH = f"""{SCAN}

def cauchy_kernel(v, w, z):
    return (v[..., None, :] / (z[..., :, None] - w[..., None, :])).sum(-1)
"""


def planted(*_, **how):
    raise IndexError("planted")


@pytest.fixture
def broken_empty(monkeypatch):
    """A judge whose check `empty` raises."""
    monkeypatch.setattr(arguments, "_graded_if_defined", planted)


@pytest.mark.usefixtures("broken_empty")
def test_an_exception_of_ours_is_the_error_of_its_check_alone():
    results = judged("linear_scan", scan, "alias", "empty", "shapes", types=("float32",))
    assert {r.check: r.verdict for r in results} == {
        "alias": "pass", "empty": "error", "shapes": "pass"}  # fmt: skip
    (fault,) = [r for r in results if r.check == "empty"]
    assert fault.message.startswith(SAID), fault.message
    assert (fault.kind, fault.hint) == (KIND, HINT)


@pytest.mark.long
@pytest.mark.usefixtures("broken_empty")
def test_other_functions_are_judged_and_the_run_fails(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    asked = ("--in-process", "--profile", "quick", "--check", "empty", "--check", "shapes")
    result, out, _ = run(capfd, "verify", plugin(tmp_path, BOTH), *asked, "--json")
    assert result == 1
    lines = json.loads(out)["results"]
    assert {(x["operator"], x["check"], x["verdict"]) for x in lines} == {
        ("linear_scan", "shapes", "pass"), ("linear_scan", "empty", "error"),
        ("cauchy_kernel", "shapes", "pass"), ("cauchy_kernel", "empty", "error"),
    }  # fmt: skip
    (first, _) = [x for x in lines if x["verdict"] == "error"]
    assert first["message"].startswith(SAID)
    assert first["kind"] == KIND
    result, out, _ = run(capfd, "verify", "my_ops.py", *asked)
    assert result == 1
    assert out.startswith("ERROR: ")
    assert SAID in out


@pytest.mark.usefixtures("broken_empty")
def test_in_an_authors_tests_it_is_a_failure_with_the_same_sentence():
    with pytest.raises(AssertionError, match="this is a fault of refssm, please report it"):
        check("linear_scan", scan, profile="quick", checks=("empty",))


@pytest.mark.usefixtures("broken_empty")
def test_an_environment_variable_shows_the_traceback(monkeypatch):
    monkeypatch.setenv("REFSSM_DEBUG", "1")
    with pytest.raises(IndexError, match="planted"):
        judged("linear_scan", scan, "empty", types=("float32",))


@pytest.mark.long
def test_a_fault_in_the_first_calls_is_the_error_of_that_function_alone(
    tmp_path, monkeypatch, capfd
):
    first = Probe.__init__

    def begun(self, session, scope, candidate):
        first(self, session, scope, candidate)
        if scope.op.name == "cauchy_kernel":
            self.session = replace(session, tick=planted)

    monkeypatch.setattr(Probe, "__init__", begun)
    monkeypatch.chdir(tmp_path)
    asked = ("--in-process", "--profile", "quick", "--check", "value", "--json")
    result, out, _ = run(capfd, "verify", plugin(tmp_path, BOTH), *asked)
    assert result == 1
    told = {x["operator"]: (x["verdict"], x["message"][: len(SAID)])
            for x in json.loads(out)["results"]}  # fmt: skip
    assert told == {"linear_scan": ("pass", ""), "cauchy_kernel": ("error", SAID)}


def test_a_fault_while_a_failure_is_explained_leaves_the_failure(monkeypatch):
    monkeypatch.setattr(explaining, "explain", planted)
    (result,) = judged("linear_scan", lambda a, b: scan(a, b) + np.float32(1), "value",
                       types=("float32",))  # fmt: skip
    assert (result.verdict, result.grade) == ("wrong", "F")
    assert result.message.startswith("worst x[")
    (note,) = result.notes
    assert note.startswith(f"while the failure was explained: {SAID}")


def test_a_piece_with_a_fault_is_left_to_the_first_process(monkeypatch):
    monkeypatch.setattr(processes, "_bench", planted)
    nothing: Any = None
    assert processes.judge_piece(nothing, nothing, "linear_scan", "an id", 3) == ("an id", 3, None)
    assert processes.prepare(nothing, "linear_scan", processes.CALLS)[-1] is None
    monkeypatch.setattr(processes, "certified", planted)
    assert processes.prepare(nothing, "linear_scan", processes.REFERENCE)[-1] is None
