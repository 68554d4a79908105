"""Known failures: what is hidden, what is reported, and that lists cannot become outdated."""

import json

import pytest
from judging import SCAN, plugin, run
from listing import FAR, PAST, VALUE, entry, listed, result

from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.project import known_failures as known
from refssm.conformance.running.session import trials_of
from refssm.conformance.running.settings import Session
from refssm.scan import LINEAR_SCAN

WRONG = SCAN.replace("return x", "return x * (1 + (x.shape[-2] > 2))")
ONE = ("--check", "value", "--dtype", "float32", "--profile", "quick")
BESIDE = """
def cauchy_kernel(v, w, z):
    return (v[..., None, :] / (z[..., :, None] - w[..., None, :])).sum(-1)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, WRONG)
    return tmp_path


def verify(capfd, *options, file="my_ops.py"):
    return run(capfd, "verify", file, "--known", "known.toml", *(options or ONE))


@pytest.mark.long
def test_a_listed_failure_is_told_with_its_reason_and_does_not_count(folder, capfd):
    listed(entry())
    code, out, _ = verify(capfd)
    assert code == 0
    assert "known failures: known.toml, 1 entry" in out.splitlines()
    assert f"known {VALUE}" in out
    assert f"  known until {FAR}: carries too much" in out
    assert "worst x[" in out
    assert "again: refssm replay" in out
    assert "(1 check, 1 known failure, " in out


@pytest.mark.long
def test_another_failure_beside_it_counts(folder, capfd):
    listed(entry("linear_scan/value[float64]"))
    code, out, _ = verify(capfd)
    assert code == 1
    assert f"FAIL {VALUE}" in out


@pytest.mark.long
def test_json_has_the_reason_the_day_and_the_complaints(folder, capfd):
    listed(entry(), entry("linear_scan/gradient[float32]"))
    code, out, _ = verify(capfd, *ONE, "--json")
    document = json.loads(out)
    assert code == 1
    (line,) = document["results"]
    assert (line["verdict"], line["known"], line["expires"]) == ("wrong", "carries too much", FAR)
    assert document["known_failures"] == "known.toml"
    (sentence,) = document["complaints"]
    told = "linear_scan/gradient[float32] matches no check of this run: remove it"
    assert sentence == f"known.toml: {told}"


@pytest.mark.long
def test_an_entry_whose_check_passes_is_an_error(folder, capfd):
    plugin(folder, SCAN)
    listed(entry())
    code, out, _ = verify(capfd, *ONE, "-v")
    assert code == 1
    assert f"pass {VALUE}" in out
    assert f"FAIL known.toml: {VALUE} passes now: remove it (reason: carries too much)" in out


@pytest.mark.long
def test_an_entry_whose_day_is_over_hides_nothing_and_is_an_error(folder, capfd):
    listed(entry(expires=PAST))
    code, out, _ = verify(capfd)
    assert code == 1
    assert f"FAIL {VALUE} " in out
    assert f"FAIL known.toml: {VALUE} expired on {PAST}, fix the failure or set a later date" in out
    plugin(folder, SCAN)
    code, out, _ = verify(capfd)
    assert code == 1
    assert f"expired on {PAST}, and passes now: remove it" in out


@pytest.mark.long
def test_the_file_of_the_project_may_name_the_list(folder, capfd):
    listed(entry(implementation="my_ops.py"))
    text = '[tool.refssm]\nknown-failures = "known.toml"\ntargets = "my_ops.py"\n'
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    code, out, _ = run(capfd, "verify", *ONE)
    assert code == 0
    assert "pyproject.toml: known-failures known.toml" in out
    listed(entry(), entry(implementation="their_ops.py"))
    code, out, _ = run(capfd, "verify", *ONE)
    assert code == 1
    assert f"known.toml: {VALUE} of their_ops.py matches no check of this run" in out


def told_of(path, *, part=False, **scope):
    """The complaints about a list after only the wrong value of my_ops.py was judged."""
    found = Found(LINEAR_SCAN, LINEAR_SCAN.reference, None)
    listing = known.read(path)
    assert listing.marked(result()).known
    listing.judged("my_ops.py", trials_of(Session(InProcess([found]), "my_ops.py")), part)
    return listing.complaints(**scope)


PART = {"part": True, "whole": False}
OUTSIDE = {
    "another check": (entry("linear_scan/prefix[float32]"), {}),
    "another type": (entry("linear_scan/value[float64]"), {"every": True}),
    "a law in another type": (entry("linear_scan/nan[complex64]"), {}),
    "a type that is judged where asked for": (entry("linear_scan/value[bfloat16]"), {}),
    "a check of --against": (entry("linear_scan/against[float32]"), {}),
    "another implementation": (entry("mamba_scan/value[float32]", implementation="other.py"), {}),
    "the same of another": (entry(implementation="other.py"), {}),
    "another function": (entry("mamba_scan/value[float32]"), PART),
    "one of the same file": (entry("mamba_scan/value[*]", implementation="my_ops.py"), PART),
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_an_entry_outside_what_was_asked_is_no_error(folder, what):
    own, scope = OUTSIDE[what]
    assert told_of(folder / listed(entry(), own), **scope) == []


IDLE = {
    "an operator that is not there": (entry("mamba_scan/value[float32]"), {}),
    "a gradient that is not there": (entry("linear_scan/gradient[float32]"), {}),
    "the same of a part": (entry("linear_scan/gradient[float32]"), PART),
    "a law that it has not": (entry("linear_scan/group[float32]"), {}),
    "of the same file": (entry("mamba_scan/value[float32]", implementation="my_ops.py"), {}),
    "of it, with others left out": (
        entry("mamba_scan/value[float32]", implementation="my_ops.py"),
        {"whole": False},
    ),
    "of no target of the file": (entry(implementation="other.py"), {"every": True}),
}


@pytest.mark.parametrize("what", IDLE)
def test_an_entry_that_matches_nothing_is_an_error(folder, what):
    own, scope = IDLE[what]
    (sentence,) = told_of(folder / listed(entry(), own), **scope)
    assert sentence.endswith(" matches no check of this run: remove it")


@pytest.mark.long
def test_one_function_of_a_file_is_not_the_whole_of_it(folder, capfd):
    listed(entry(), entry("mamba_scan/value[float32]"))
    assert verify(capfd)[0] == 1
    assert verify(capfd, *ONE, file="my_ops.py::linear_scan")[0] == 0


@pytest.mark.long
def test_a_target_left_out_by_name_is_no_error_but_in_the_whole_run(folder, capfd):
    plugin(folder, BESIDE, "kernel.py")
    text = '[tool.refssm]\nknown-failures = "known.toml"\ntargets = ["my_ops.py", "kernel.py"]\n'
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    listed(entry(), entry("cauchy_kernel/gradient[complex64]"))
    call = ("verify", "--check", "value")
    code, out, _ = run(capfd, *call, "my_ops.py", "--profile", "quick")
    assert code == 0, out
    code, out, _ = run(capfd, *call, "--profile", "quick")
    assert code == 1
    assert "cauchy_kernel/gradient[complex64] matches no check" in out
    assert VALUE + " matches" not in out


@pytest.mark.long
def test_a_pattern_hides_all_and_is_idle_only_if_all_pass(folder, capfd):
    listed(entry("linear_scan/*[*]", implementation="my_*.py"))
    code, out, _ = verify(capfd, *ONE, "--check", "alias")
    assert code == 0
    assert "(2 checks, 1 known failure, " in out
    code, out, _ = verify(capfd, "--check", "alias", "--dtype", "float32")
    assert code == 1
    assert "linear_scan/*[*] of my_*.py passes now: remove it" in out


@pytest.mark.long
def test_what_was_not_judged_says_nothing_of_an_entry(folder, capfd):
    plugin(folder, "def linear_scan(a, b): raise NotImplementedError('not today')")
    listed(entry(), entry("linear_scan/split[float32]"))
    code, out, _ = verify(capfd, *ONE, "--check", "split")
    assert code == 5
    assert "passes now" not in out


def test_a_pass_in_a_narrowed_domain_says_nothing_of_an_entry(folder, capfd):
    listed(entry())
    code, out, _ = verify(capfd, *ONE, "--where", "l=1..2")
    assert code == 0
    assert "   value [float32]\n" in out


@pytest.mark.long
def test_a_quick_run_does_not_say_of_a_law_that_its_failure_is_gone(folder, capfd):
    plugin(folder, SCAN)
    listed(entry("linear_scan/prefix[float32]"))
    only = ("--check", "prefix", "--dtype", "float32")
    assert verify(capfd, *only, "--profile", "quick")[0] == 0
    assert verify(capfd, *only)[0] == 1


@pytest.mark.long
def test_failures_can_be_written_as_a_list_whose_reasons_are_missing(folder, capfd):
    code, _, _ = run(capfd, "verify", "my_ops.py", *ONE, "--write-known", "known.toml")
    assert code == 1
    assert [*folder.glob("*.partial")] == []
    code, _, err = verify(capfd)
    assert code == 4
    assert f"known.toml: entry 1 ({VALUE}): `reason`: wanted a text, got ''" in err
    text = (folder / "known.toml").read_text(encoding="utf-8")
    assert "# worst x[" in text
    (folder / "known.toml").write_text(
        text.replace('reason = ""', 'reason = "known"'), encoding="utf-8"
    )
    assert verify(capfd)[0] == 0
    for name, sentence in (("known.toml", "already exists"), ("no/known.toml", "No such file")):
        code, _, err = run(capfd, "verify", "my_ops.py", *ONE, "--write-known", name)
        assert code == 4
        assert sentence in err
    assert "known" in (folder / "known.toml").read_text(encoding="utf-8")
