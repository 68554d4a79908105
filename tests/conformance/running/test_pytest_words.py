"""What pytest prints about marked functions: the short summary, skips, and how to see it again."""

import re
import shlex

import pytest
from test_pytest_plugin import ALONE, HEAD, LATE, RIGHT

from refssm.conformance.judging.result import Result
from refssm.conformance.report.verdict import headline

pytest_plugins = ["pytester"]

TURNED = """
@pytest.mark.refssm("linear_scan", layout="b n l, b n l -> b n l")
def test_turned(a, b):
    return linear_scan(a.swapaxes(1, 2), b.swapaxes(1, 2))
"""
CHECKED = """
from refssm.testing import check

def late(a, b):
    x = linear_scan(a, b)
    x[..., 64:65, :] = b[..., 64:65, :]
    return x

def test_check():
    check("linear_scan", late, checks=("value",), dtypes=("float64", "float32"))
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest on a file of these texts, on a terminal that is 100 characters wide."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("CI", raising=False)  # there pytest cuts no line
    monkeypatch.delenv("BUILD_NUMBER", raising=False)

    def ran(*texts, options=()):
        pytester.makepyfile(test_ops=HEAD + "".join(texts).replace("OPTIONS", ""))
        return pytester.runpytest(*ALONE, *options)

    return ran


def summary(result):
    return [line for line in result.outlines if line.startswith("FAILED")]


WORST = "worst x[0, 64, 0]: got 1, want 65 ± 2.0e-03; every entry with l = 64 wrong"
SHORT = {
    "an entry": (("wrong", "F", WORST), "F linear_scan: x[0,64,0]=1, want 65"),
    "with a spike": (
        ("wrong", "F", f"with a[0, 65, 0] = NaN: {WORST}"),
        "F linear_scan: x[0,64,0]=1, want 65",
    ),
    "a few digits": (
        ("inaccurate", "C", "worst da: got 1.5+2j, want 1.25+2j ± 1e-3; every entry is wrong"),
        "C linear_scan: da=1.5+2j, want 1.25+2j",
    ),
    "NaN": (
        ("wrong", "F", "worst x[2]: got nan (NaN), want finite; every entry is wrong"),
        "F linear_scan: x[2]=nan, want finite",
    ),
    "in norm": (
        ("wrong", "F", "worst x[1, 1]: got 1, want 2 (residual 1.0e-3 in norm, allowed 1e-9); a"),
        "F linear_scan: x[1,1]=1, want 2",
    ),
    "a shape": (
        ("wrong", "F", "`x` has shape (2, 5), want (5, 2); a layout that fits: n l -> l n"),
        "F linear_scan: `x` has shape (2, 5), want (5, 2)",
    ),
    "an exception": (
        ("error", "-", "raised KeyError: 'lost' (ops.py:3)"),
        "error linear_scan: raised KeyError: 'lost' (ops.py:3)",
    ),
    "too few cases": (
        ("thin", "A", "only 6 of 24 cases could be judged: 392 of 399 draws were declined"),
        "thin linear_scan: only 6 of 24 cases could be judged: 392 of 399 draws were declined",
    ),
}


@pytest.mark.parametrize("what", SHORT)
def test_a_failure_in_one_line_has_the_grade_first_and_then_the_worst_entry(what):
    (verdict, grade, message), wanted = SHORT[what]
    result = Result("linear_scan", "ops.py", "value", "float32", verdict, grade, message=message)
    assert headline(result) == wanted
    told = wanted.replace("linear_scan", "linear_scan/value[float32]", 1)
    assert headline(result, result.id) == told


@pytest.mark.long
def test_the_short_summary_has_verdict_and_worst_entry_in_a_line(run):
    result = run(LATE, CHECKED, options=("-k", "test_late and value[float32] or test_check"))
    late, checked = summary(result)
    item = "FAILED test_ops.py::test_late::value[float32] - F linear_scan: x[0,64,0]=1, want 65"
    assert late == item
    assert checked.startswith(
        "FAILED test_ops.py::test_check - AssertionError: F linear_scan/value[float32]: x[0,64,0]=1"
    )
    without = run(LATE, CHECKED, options=("-k", "test_late and value[float32]", "--tb=no"))
    assert summary(without) == [item]


@pytest.mark.long
@pytest.mark.parametrize("ci", ["", "1"])
def test_a_failure_has_one_line_in_the_summary_of_a_ci_too(ci, run, monkeypatch):
    monkeypatch.setenv("CI", ci)
    *_, head, failed, end = run(LATE, options=("-k", "test_late and value[float32]")).outlines
    assert "short test summary" in head
    assert failed.startswith("FAILED test_ops.py::test_late::value[float32] - F linear_scan")
    assert "1 failed" in end


@pytest.mark.long
def test_the_line_again_shows_a_failure_again(run, pytester):
    result = run(LATE, options=("--refssm-profile=quick", "--refssm-seed=3", "-k", "value"))
    (line,) = (x for x in result.outlines if x.startswith("  again: "))
    program, *words = shlex.split(line.removeprefix("  again: "))
    assert program == "pytest"
    assert words[:2] == ["--refssm-profile=quick", "--refssm-seed=3"]
    again = pytester.runpytest(*ALONE, *words)
    assert again.parseoutcomes() == {"failed": 1}

    def told(result):
        return [x for x in result.outlines if x.startswith(("  worst", "FAILED"))]

    assert told(again) == told(result)
    assert len(told(again)) == 2


def test_the_line_again_is_about_the_folder_where_pytest_was_started(run, pytester, monkeypatch):
    raising = RIGHT.replace("return linear_scan(a, b)", "raise KeyError('lost')")
    below = pytester.mkdir("below")
    pytester.makeini("[pytest]")
    run(raising, options=("--co",))
    monkeypatch.chdir(below)
    result = pytester.runpytest(*ALONE, "../test_ops.py", "--refssm-profile=quick", "-k", "alias")
    again = "  again: pytest --refssm-profile=quick '../test_ops.py::test_scan::alias[float32]'"
    assert again in result.outlines


@pytest.mark.parametrize("check", ["nan", "prefix", "repeat"])
def test_laws_conduct_and_errors_of_items_have_the_line_again(check, run):
    raising = RIGHT.replace("return linear_scan(a, b)", "raise KeyError('lost')")
    result = run(raising, options=("--refssm-profile=quick", "-k", f"{check}[float32]"))
    item = f"test_ops.py::test_scan::{check}[float32]"
    assert f"  again: pytest --refssm-profile=quick '{item}'" in result.outlines
    assert summary(result)[0].startswith(f"FAILED {item} - error linear_scan: ")


def test_what_a_profile_leaves_out_is_one_sentence_with_what_runs_it(run):
    left = "value[float64, complex64, complex128], scaling[float32], zero[float32], causal"
    result = run(RIGHT, options=("--refssm-profile=quick", "-k", "value or zero"))
    told = f"not in the profile quick, --refssm-profile=default runs it: {left}"
    (line,) = (x for x in result.outlines if told in x)
    assert re.match(r"SKIPPED \[4\] test_ops\.py:\d+: ", line)
    assert result.parseoutcomes() == {"passed": 1, "skipped": 4, "deselected": 21}
    marked = RIGHT.replace("OPTIONS", ', profile="quick"')
    result = run(marked, options=("-k", "zero"))
    assert 'not in the profile quick, `profile="default"` in the mark runs it' in "".join(
        result.outlines
    )


def test_a_check_that_is_left_out_runs_no_code(run, pytester):
    run(
        RIGHT.replace("return linear_scan(a, b)", "open('called', 'w')"),
        options=("--refssm-profile=quick", "-k", "zero or causal"),
    )
    assert not (pytester.path / "called").exists()


def test_a_gradient_that_nobody_can_judge_is_a_skip_that_says_what_it_needs(run):
    text = RIGHT.replace("OPTIONS", ', framework="torch"')
    result = run(text, options=("-k", "gradient"))
    told = "needs vjp=True (the gradient of torch) or linear_scan_vjp"
    assert any(told in line for line in result.outlines)


def test_a_skip_has_the_name_of_its_check(run):
    result = run(RIGHT, options=("--refssm-profile=quick", "-k", "split"))
    told = "split[float32]: needs linear_scan_from, a marked function of test_ops.py"
    assert any(line.endswith(told) for line in result.outlines)


@pytest.mark.long
def test_several_processes_say_once_that_a_layout_does_not_fit(run):
    spread = ("-p", "xdist", "-n", "2", "--refssm-profile=quick", "--dist=load")
    result = run(RIGHT, TURNED, options=spread)
    assert result.parseoutcomes() == {"failed": 1, "passed": 12, "skipped": 39}
    (line,) = summary(result)
    assert line.startswith("FAILED test_ops.py::test_turned::value[float32] - F linear_scan: `x`")
    told = "not run: the layout does not fit, which value[float32] reports"
    assert any(x.startswith("SKIPPED [12]") and x.endswith(told) for x in result.outlines)
    assert any("  again: pytest " in x for x in result.outlines)


WRONG = RIGHT.replace('"linear_scan"', '"linear_scann"').replace("test_scan", "test_wrong")


@pytest.mark.long
def test_a_wrong_mark_changes_nothing_for_the_usual_options(run, pytester):
    quick = "--refssm-profile=quick"
    assert run(RIGHT, WRONG, options=(quick, "-x", "-k", "nan")).parseoutcomes()["passed"] == 1
    listed = run(RIGHT, WRONG, options=(quick, "--collect-only", "-q")).outlines
    assert len([x for x in listed if "::" in x]) == 27
    assert "test_ops.py::test_wrong::mark" in listed
    quiet = run(RIGHT, WRONG, options=(quick, "-q", "--tb=no", "-k", "nan"))
    (line,) = summary(quiet)
    assert line.startswith(
        "FAILED test_ops.py::test_wrong::mark - `linear_scann` is no operator; did you mean linear"
    )
    remembering = [o for o in ALONE if o != "no:cacheprovider"]
    remembering.remove("-p")
    for outcome in ({"failed": 1, "passed": 1, "deselected": 25}, {"failed": 1, "deselected": 26}):
        last = ("--lf",) if "passed" not in outcome else ("-k", "nan")
        assert pytester.runpytest(*remembering, quick, *last).parseoutcomes() == outcome


def test_without_the_plug_in_functions_with_other_names_are_no_tests(pytester):
    pytester.makepyfile(test_ops=HEAD + RIGHT.replace("test_scan", "scan").replace("OPTIONS", ""))
    alone = ("-p", "no:cacheprovider", "--disable-plugin-autoload")
    quiet = ("-W", "ignore::pytest.PytestUnknownMarkWarning")
    assert pytester.runpytest(*alone, *quiet).parseoutcomes() == {}
    result = pytester.runpytest(*ALONE, "--refssm-profile=quick", "-k", "nan")
    assert result.parseoutcomes()["passed"] == 1
