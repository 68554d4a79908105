"""The report of `refssm verify`: the verdict first, each failure once, what passed in one line."""

import math
import re
from dataclasses import replace

import pytest
from judging import LATE, SCAN, judged, plugin, run, scan

from refssm.command.spoken import USUAL, Report
from refssm.conformance.judging.result import THIN, Also, Result
from refssm.conformance.report import lines, ordered
from refssm.conformance.report.verdict import IN_NORM, verdict_of

WRONG = Result(
    "linear_scan", "my_ops.py", "value", "float32", "wrong", "F", 3e33, 1.2, 25,
    message="worst x[0, 1, 0]: got 1, want 2 ± 1.0e-07; every entry with l = 1 wrong", digits=24,
    smallest="l=2 n=1", counterexample=".refssm/one.npz",
)  # fmt: skip
PASS = replace(
    WRONG, verdict="pass", grade="A", ratio=0.5, bits=23.4, message="", smallest="",
    counterexample="",
)  # fmt: skip
CAUSE = "the carry lost at chunks of 64"
NAMED = replace(WRONG, looks_like=f"{CAUSE}: this known bug, put into the reference, gives …")
INACCURATE = replace(
    WRONG, verdict="inaccurate", grade="C", ratio=200.0, bits=12.9, check="gradient"
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(results, capsys, complaints=(), headers=()):
    import sys

    how = {"complaints": complaints}
    out = lines.console(sys.stdout)
    verdict = verdict_of(results, **how)
    ordered.show(out, verdict, results, complaints, headers, 1.0)
    return capsys.readouterr().out


def test_the_first_line_names_operator_file_cause_and_how_much_fails():
    verdict = verdict_of([PASS, NAMED])
    assert verdict.line == f"WRONG: linear_scan (my_ops.py): {CAUSE}"
    assert (verdict.counts, verdict.style) == ("1 of 2 checks fails", "red")


def test_without_a_cause_the_worst_entry_is_told():
    line = verdict_of([WRONG]).line
    assert line == "WRONG: linear_scan (my_ops.py): worst x[0, 1, 0]: got 1, want 2 ± 1.0e-07"


def test_wrong_comes_before_inaccurate_and_a_named_cause_before_others(capsys):
    out = told([INACCURATE, WRONG, replace(NAMED, check="batch")], capsys)
    order = re.findall(r"^FAIL linear_scan/(\w+)", out, re.MULTILINE)
    assert order == ["batch", "value", "gradient"]
    assert out.startswith("WRONG: linear_scan (my_ops.py): the carry")


def test_what_is_wrong_of_values_comes_before_what_is_wrong_of_nan_even_if_that_is_named(capsys):
    out = told([INACCURATE, replace(NAMED, check="nan"), WRONG], capsys)
    order = re.findall(r"^FAIL linear_scan/(\w+)", out, re.MULTILINE)
    assert order == ["value", "nan", "gradient"]


def test_bits_are_told_of_an_inaccurate_result():
    line = verdict_of([INACCURATE]).line
    assert line.startswith("INACCURATE: linear_scan (my_ops.py): 12 bits of 24 in float32; worst x")


def test_other_wrong_operators_are_counted():
    third = replace(PASS, operator="dense_scan")
    results = [NAMED, replace(WRONG, operator="ssd_chunked"), third]
    start = "WRONG: linear_scan (my_ops.py) and 1 other of 3: "
    assert verdict_of(results).line.startswith(start)


def test_of_several_files_the_wrong_one_is_named_everywhere(capsys):
    right = replace(PASS, implementation="other.py")
    skipped = replace(right, check="split", verdict="skipped", grade="-", message="needs more")
    out = told([right, skipped, NAMED], capsys)
    assert out.startswith(f"WRONG: linear_scan (my_ops.py): {CAUSE}")
    assert "FAIL linear_scan/value[float32] of my_ops.py grade F" in out
    assert "pass linear_scan of other.py   grade A" in out
    assert "skip linear_scan of other.py   split" in out
    both = verdict_of([PASS, right]).line
    assert both.startswith("PASS: 2 implementations in 2 files: grade A, ")


def test_a_note_that_only_the_other_type_has_is_told_there(capsys):
    noted = replace(NAMED, dtype="float64", notes=("`x` is wider",))
    assert "  as in float32: " + CAUSE + "\n  note: `x` is wider\n" in told([NAMED, noted], capsys)


def test_a_pass_tells_the_lowest_grade_and_the_fewest_bits_of_each_precision_but_those_in_norm():
    double = replace(PASS, dtype="float64", digits=53, bits=0.0, grade="N")
    skipped = replace(PASS, verdict="skipped", grade="-", message="needs linear_scan_from")
    verdict = verdict_of([PASS, double, skipped, replace(PASS, bits=20.1)])
    bits = f"grades A, N, at least 20 of 24 bits, {IN_NORM}"
    assert verdict.line == f"PASS: linear_scan (my_ops.py): {bits}"
    assert (verdict.counts, verdict.style) == ("3 checks, 1 skipped", "green")
    precise = verdict_of([PASS, replace(double, bits=50.5, grade="A")])
    assert precise.line.endswith("grade A, at least 23 of 24, 50 of 53 bits")
    assert verdict_of([double]).line == f"PASS: linear_scan (my_ops.py): grade N, {IN_NORM}"


def test_a_line_of_grade_n_has_no_bits():
    line = lines.facts(replace(PASS, bits=0.0, grade="N"))
    assert line.startswith("grade N   ratio ")
    assert "   in norm   " in line
    assert "bits" not in line


def test_what_is_thin_or_only_known_or_outdated_or_not_judged_or_interrupted_has_its_word():
    thin = replace(PASS, verdict=THIN, message="only 6 of 24 cases could be judged")
    assert verdict_of([PASS, thin]).line.startswith("THIN: linear_scan (my_ops.py): only 6 of 24")
    assert verdict_of([replace(thin, tolerated=True)]).counts == "1 check, 1 thin, allowed"
    known = replace(WRONG, known="issue 4")
    assert verdict_of([known]).word == "PASS"
    assert verdict_of([known]).counts == "1 check, 1 known failure"
    assert verdict_of([PASS], complaints=["`a` passes"]).line == "OUT OF DATE: `a` passes"
    skipped = replace(PASS, verdict="skipped", message="needs a gradient")
    nothing = verdict_of([skipped])
    assert nothing.line == "NOTHING JUDGED: every check was skipped: needs a gradient"
    assert nothing.style == "yellow"
    early = verdict_of([NAMED], interrupted=True).line
    assert early == f"INTERRUPTED: WRONG so far: linear_scan (my_ops.py): {CAUSE}"
    assert verdict_of([], interrupted=True).line == "INTERRUPTED: nothing was judged"


def test_the_same_failure_in_another_type_is_told_in_short(capsys):
    double = replace(NAMED, dtype="float64", counterexample=".refssm/two.npz")
    unnamed = [replace(WRONG, dtype=f"complex{n}") for n in (64, 128)]
    out = told([NAMED, double, *unnamed], capsys)
    assert out.count("looks like") == 1
    assert f"  as in float32: {CAUSE}\n  again: refssm replay .refssm/two.npz" in out
    assert out.count("  worst x[0, 1, 0]") == 3  # a failure without a name is told in full


def test_another_failure_of_the_same_check_is_never_left_out(capsys):
    also = Also("error", "raised KeyError", "-", math.inf, 0.0, 2, "raised KeyError: 'a'")
    out = told([NAMED, replace(NAMED, dtype="float64", also=(also,))], capsys)
    assert "also error in 2 of 25: raised KeyError: 'a'" in out


def test_a_terminal_says_how_many_checks_have_failed_so_far():
    class Bar:
        seen, shown = (), True

        def tick(self, *what):
            self.seen += (what,)

    report = Report(USUAL, Bar())
    for result in (PASS, WRONG):
        report.result(result, ())
        report.tick("linear_scan", 3, 25)
    assert report.bar.seen == (("linear_scan", 3, 25), ("1 failed so far; linear_scan", 3, 25))


def test_a_ratio_above_a_million_is_a_word(capsys):
    out = told([WRONG, INACCURATE], capsys)
    assert "ratio above a million (allowed 16)" in out
    assert "ratio 2e+02 (allowed 16)" in out
    assert "e+33" not in out


def test_what_passed_is_one_line_and_what_was_not_tested_comes_once(capsys):
    noted = replace(PASS, dtype="float64", notes=("`x` is wider",))
    skipped = [
        replace(PASS, check=c, verdict="skipped", message="needs a gradient")
        for c in ("split", "zero")
    ]
    out = told([PASS, noted, *skipped], capsys, headers=["my_ops.py   profile default"])
    (passed,) = re.findall("^pass .*$", out, re.MULTILINE)
    assert passed.startswith(
        "pass linear_scan   grade A, at least 23 of 24 bits   50 cases   value"
    )
    assert "  value [float64]: note: `x` is wider\n" in out
    assert "skip linear_scan   split zero [float32]: needs a gradient\n" in out
    assert out.count("inputs outside the domains") == len(re.findall("^not tested", out, re.M))
    assert out.rstrip().endswith("my_ops.py   profile default")


@pytest.mark.parametrize(
    ("operator", "check", "dtype", "limit"),
    [
        ("linear_scan", "value", "float32", "l above 1537 for presets, 300 (thorough: 8192) for"),
        ("linear_scan", "gradient", "float32", "l above 1537 for presets, 300 for others, batches"),
        ("linear_scan", "additive", "float32", "types other than float32, l above 129"),
        ("diagonal_kernel_zoh", "value", "complex64", "l above 4097 (thorough: 8192)"),
        ("hankel_singular_values", "value", "float64", "n above 32, batches"),
        ("discretize_zoh", "value", "float64", "n above 33 for presets, 5 for others, batches"),
        ("discretize_bilinear", "value", "float32", "n above 65, batches above 3"),
        ("discretize_bilinear", "gradient", "float32", "n above 64, batches above 3"),
    ],
)
def test_a_pass_tells_the_largest_sizes_that_were_drawn(operator, check, dtype, limit):
    result = replace(PASS, operator=operator, check=check, dtype=dtype, profile="default")
    assert lines.limits(result).startswith(limit)


def test_a_pass_names_the_largest_size_of_every_dimension_that_was_judged():
    how = {"operator": "ssd_recurrent", "dtype": "float32", "profile": "default"}
    reached = {"l": 1537, "p": 128, "n": 256, "b": 3, "g": 3, "h": 5}
    result = replace(PASS, check="value", reached=reached, **how)
    told = "l above 1537 for presets, 300 (thorough: 8192) for others, p above 128, n above 256, "
    assert lines.limits(result).startswith(f"{told}b above 3, g above 3, h above 5, inputs")
    state = replace(result, operator="ssd_recurrent_stateful", check="state")
    state = replace(state, reached={"l": 192, "n": 256})
    assert lines.limits(state).startswith("l above 192 (thorough: 8192), n above 256, inputs")


def test_the_sizes_that_a_run_names_are_those_that_it_judged():
    narrow = {"only": lambda a, b: None if b.shape[-1] > 65 else (a, b)}
    for more, dims in (({}, {"l", "n", "b"}), (narrow, set())):
        (result,) = judged("linear_scan", scan, "value", types=("float32",), **more)
        assert {*result.reached} == dims
        assert not dims or (result.reached["n"], result.reached["b"]) == (256, 5)


def test_declined_cases_and_calls_slice_by_slice_are_told_of_a_pass(capsys):
    results = [replace(PASS, examples=47, declined=23), replace(PASS, check="nan", sliced=True)]
    assert "   72 cases, declined 23 of 72 slice by slice   value nan" in told(results, capsys)


def test_other_reasons_why_a_run_fails_are_told_below_the_verdict(capsys):
    out = told([PASS], capsys, complaints=["known.toml: `a` passes"])
    assert "\nFAIL known.toml: `a` passes\n" in out


@pytest.mark.long
def test_quiet_prints_one_line_and_verbose_prints_each_check_in_full(folder, capfd):
    call = ("verify", plugin(folder, SCAN), "--profile", "quick", "--dtype", "float32")
    code, out, _ = run(capfd, *call, "-q")
    assert (code, len(out.splitlines()), out.startswith("PASS: linear_scan")) == (0, 1, True)
    code, out, _ = run(capfd, *call, "-v")
    assert out.splitlines()[-1].startswith("PASS: linear_scan")
    assert len(re.findall(r"^pass linear_scan/\w+\[", out, re.MULTILINE)) > 10
    assert out.startswith("my_ops.py   profile quick")


def test_options_that_contradict_each_other_are_refused(folder, capfd):
    code, _, err = run(capfd, "verify", plugin(folder, SCAN), "-q", "-v")
    told_is = "--verbose and --quiet contradict each other: give one of them"
    assert (code, told_is in err) == (4, True)


@pytest.mark.long
def test_a_wrong_scan_is_named_in_the_first_line(folder, capfd):
    call = ("verify", plugin(folder, LATE), "--profile", "quick", "--check", "value")
    code, out, _ = run(capfd, *call)
    first = out.splitlines()[0]
    assert (code, first.startswith("WRONG: linear_scan (my_ops.py): ")) == (1, True)
    assert "(1 of 1 check fails, " in first
