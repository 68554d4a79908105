"""Known failures: what is hidden, what is told, and that a list cannot rot."""

import json
from datetime import date

import pytest
from judging import SCAN, plugin, run

from refssm.conformance import known
from refssm.conformance.found import Found
from refssm.conformance.plugin import UsageError
from refssm.conformance.result import Result
from refssm.conformance.session import Session
from refssm.conformance.worker import InProcess
from refssm.scan import LINEAR_SCAN

WRONG = SCAN.replace("return x", "return x * (1 + (x.shape[-2] > 2))")
FAR, PAST = "2999-01-31", "2020-01-31"
ONE = ("--check", "value", "--dtype", "float32", "--profile", "quick")
VALUE = "linear_scan/value[float32]"
BESIDE = """
def cauchy_kernel(v, w, z):
    return (v[..., None, :] / (z[..., :, None] - w[..., None, :])).sum(-1)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugin(tmp_path, WRONG)
    return tmp_path


def entry(id=VALUE, reason="carries too much", expires=FAR, implementation=""):
    mine = f'implementation = "{implementation}"\n' if implementation else ""
    return f'[[known]]\nid = "{id}"\n{mine}reason = "{reason}"\nexpires = {expires}\n'


def listed(*entries, name="known.toml"):
    with open(name, "w") as file:
        file.write("\n".join(entries))
    return name


def verify(capfd, *options, file="my_ops.py"):
    return run(capfd, "verify", file, "--known", "known.toml", *(options or ONE))


def test_a_listed_failure_is_told_with_its_reason_and_does_not_count(folder, capfd):
    listed(entry())
    result, out, _ = verify(capfd)
    assert result == 0
    assert "known failures: known.toml, 1 entry" in out.splitlines()
    assert f"known {VALUE}" in out
    assert f"  known until {FAR}: carries too much" in out
    assert "worst x[" in out
    assert "again: refssm verify" in out
    assert "1 checks: 1 known" in out


def test_another_failure_beside_it_counts(folder, capfd):
    listed(entry("linear_scan/value[float64]"))
    result, out, _ = verify(capfd)
    assert result == 1
    assert f"FAIL {VALUE}" in out


def test_json_has_the_reason_the_day_and_the_complaints(folder, capfd):
    listed(entry(), entry("linear_scan/gradient[float32]"))
    result, out, _ = verify(capfd, *ONE, "--json")
    document = json.loads(out)
    assert result == 1
    (line,) = document["results"]
    assert (line["verdict"], line["known"], line["expires"]) == ("wrong", "carries too much", FAR)
    assert document["known_failures"] == "known.toml"
    (sentence,) = document["complaints"]
    told = "linear_scan/gradient[float32] matches no check of what was judged: remove it"
    assert sentence == f"known.toml: {told}"


def test_an_entry_whose_check_passes_is_an_error(folder, capfd):
    plugin(folder, SCAN)
    listed(entry())
    result, out, _ = verify(capfd)
    assert result == 1
    assert f"pass {VALUE}" in out
    assert f"FAIL known.toml: {VALUE} passes now: remove it (reason: carries too much)" in out


def test_an_entry_whose_day_is_over_hides_nothing_and_is_an_error(folder, capfd):
    listed(entry(expires=PAST))
    result, out, _ = verify(capfd)
    assert result == 1
    assert f"FAIL {VALUE} " in out
    assert f"FAIL known.toml: {VALUE} expired on {PAST}, mend it, or say until when" in out
    plugin(folder, SCAN)
    result, out, _ = verify(capfd)
    assert result == 1
    assert f"expired on {PAST}, and passes now: remove it" in out


def test_the_file_of_the_project_may_name_the_list(folder, capfd):
    listed(entry(implementation="my_ops.py"))
    text = '[tool.refssm]\nknown-failures = "known.toml"\ntargets = "my_ops.py"\n'
    (folder / "pyproject.toml").write_text(text)
    result, out, _ = run(capfd, "verify", *ONE)
    assert result == 0
    assert "pyproject.toml: known-failures known.toml" in out
    listed(entry(), entry(implementation="their_ops.py"))
    result, out, _ = run(capfd, "verify", *ONE)
    assert result == 1
    assert f"known.toml: {VALUE} of their_ops.py matches no check of what was judged" in out


def told_of(path, *, part=False, **scope):
    """What is said of a list after the value of my_ops.py, which is wrong, was judged alone."""
    found = Found(LINEAR_SCAN, LINEAR_SCAN.reference, None)
    listing = known.read(path)
    assert listing.marked(result()).known
    listing.judged("my_ops.py", Session(InProcess([found]), "my_ops.py").trials(), part)
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
    "of no target of the file": (entry(implementation="other.py"), {"every": True}),
}


@pytest.mark.parametrize("what", IDLE)
def test_an_entry_that_matches_nothing_is_an_error(folder, what):
    own, scope = IDLE[what]
    (sentence,) = told_of(folder / listed(entry(), own), **scope)
    assert sentence.endswith(" matches no check of what was judged: remove it")


def test_one_function_of_a_file_is_not_the_whole_of_it(folder, capfd):
    listed(entry(), entry("mamba_scan/value[float32]"))
    assert verify(capfd)[0] == 1
    assert verify(capfd, *ONE, file="my_ops.py::linear_scan")[0] == 0


def test_a_target_left_out_by_name_is_no_error_but_in_the_whole_run(folder, capfd):
    plugin(folder, BESIDE, "kernel.py")
    text = '[tool.refssm]\nknown-failures = "known.toml"\ntargets = ["my_ops.py", "kernel.py"]\n'
    (folder / "pyproject.toml").write_text(text)
    listed(entry(), entry("cauchy_kernel/gradient[complex64]"))
    call = ("verify", "--check", "value")
    result, out, _ = run(capfd, *call, "my_ops.py", "--profile", "quick")
    assert result == 0, out
    result, out, _ = run(capfd, *call, "--profile", "quick")
    assert result == 1
    assert "cauchy_kernel/gradient[complex64] matches no check" in out
    assert VALUE + " matches" not in out


def test_a_pattern_hides_all_and_is_idle_only_if_all_pass(folder, capfd):
    listed(entry("linear_scan/*[*]", implementation="my_*.py"))
    result, out, _ = verify(capfd, *ONE, "--check", "alias")
    assert result == 0
    assert "1 pass, 1 known" in out
    result, out, _ = verify(capfd, "--check", "alias", "--dtype", "float32")
    assert result == 1
    assert "linear_scan/*[*] of my_*.py passes now: remove it" in out


def test_what_was_not_judged_says_nothing_of_an_entry(folder, capfd):
    plugin(folder, "def linear_scan(a, b): raise NotImplementedError('not today')")
    listed(entry(), entry("linear_scan/split[float32]"))
    result, out, _ = verify(capfd, *ONE, "--check", "split")
    assert result == 5
    assert "passes now" not in out


def test_a_pass_in_a_narrowed_domain_says_nothing_of_an_entry(folder, capfd):
    listed(entry())
    result, out, _ = verify(capfd, *ONE, "--where", "l=1..2")
    assert result == 0
    assert f"pass {VALUE}" in out


def test_a_quick_run_does_not_say_of_a_law_that_its_failure_is_gone(folder, capfd):
    plugin(folder, SCAN)
    listed(entry("linear_scan/prefix[float32]"))
    only = ("--check", "prefix", "--dtype", "float32")
    assert verify(capfd, *only, "--profile", "quick")[0] == 0
    assert verify(capfd, *only)[0] == 1


def test_failures_can_be_written_as_a_list_whose_reasons_are_missing(folder, capfd):
    result, _, _ = run(capfd, "verify", "my_ops.py", *ONE, "--write-known", "known.toml")
    assert result == 1
    assert [*folder.glob("*.partial")] == []
    result, _, err = verify(capfd)
    assert result == 4
    assert f"known.toml: entry 1 ({VALUE}): `reason` is in words, not empty, got ''" in err
    text = (folder / "known.toml").read_text()
    assert "# worst x[" in text
    (folder / "known.toml").write_text(text.replace('reason = ""', 'reason = "known"'))
    assert verify(capfd)[0] == 0
    for name, sentence in (("known.toml", "already there"), ("no/known.toml", "No such file")):
        result, _, err = run(capfd, "verify", "my_ops.py", *ONE, "--write-known", name)
        assert result == 4
        assert sentence in err
    assert "known" in (folder / "known.toml").read_text()


MALFORMED = {
    "no TOML": ("[[known]\n", "known.toml: not valid TOML: Expected ']]'"),
    "one bracket": ("[known]\nid = 'x'\n", "entries are tables [[known]], with two brackets each"),
    "another table": ("[[knwon]]\nid = 'x'\n", "entries are tables [[known]], got 'knwon'"),
    "words": ("known = 'linear_scan'\n", "with two brackets each"),
    "a list of words": ("known = ['linear_scan']\n", "with two brackets each"),
    "no id": (f"[[known]]\nreason = 'x'\nexpires = {FAR}\n", "entry 1 has no `id`; wanted are id"),
    "no reason": (f"[[known]]\nid = '{VALUE}'\nexpires = {FAR}\n", "entry 1 has no `reason`"),
    "no day": (f"[[known]]\nid = '{VALUE}'\nreason = 'x'\n", "entry 1 has no `expires`"),
    "an empty reason": (entry(reason="  "), f"entry 1 ({VALUE}): `reason` is in words, not empty"),
    "a reason of several lines": (entry(reason=r"a\nb"), "`reason` is in words"),
    "a reason that is a number": (entry().replace('"carries too much"', "3"), "got 3"),
    "an unknown key": (entry() + "until = 3\n", "entry 1 has no key 'until'; there are id"),
    "a key with a slip": (entry() + "reasn = 'x'\n", "no key 'reasn'; did you mean reason?"),
    "a day in quotes": (entry(expires=f"'{FAR}'"), "a day without quotes, as in 2027-01-31, got"),
    "a time of the day": (entry(expires=f"{FAR}T00:00:00"), "`expires` is a day without quotes"),
    "no such day": (entry(expires="2027-02-30"), "not valid TOML"),
    "a number as a day": (entry(expires="2027"), "got 2027"),
    "no check": (
        entry("linear_scan"),
        "entry 1: an id is operator/check[dtype], got 'linear_scan'",
    ),
    "no type": (entry("linear_scan/value"), "an id is operator/check[dtype]"),
    "a slip in the operator": (entry("liner_scan/value[float32]"), "did you mean linear_scan?"),
    "a slip in the check": (entry("linear_scan/vlaue[float32]"), "no check 'vlaue'; did you mean"),
    "a slip in the type": (
        entry("linear_scan/value[float]"),
        "no type 'float'; did you mean float",
    ),
    "a pattern of nothing": (entry("linear_*z/value[*]"), "no operator 'linear_*z'"),
    "an id that is a number": (entry().replace(f'"{VALUE}"', "7"), "entry 1: `id` is in words"),
    "an empty implementation": (
        entry().replace("reason", "implementation=''\nreason", 1),
        "got ''",
    ),
    "the same twice": (entry() + entry(), f"{VALUE} is listed twice"),
    "the second": (entry() + entry("x"), "entry 2: an id is operator/check[dtype], got 'x'"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_list_is_one_sentence_and_exit_code_4(folder, capfd, what):
    text, sentence = MALFORMED[what]
    listed(text)
    result, out, err = verify(capfd)
    assert result == 4
    assert err.startswith("refssm: known.toml: ")
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert out == ""


def test_a_list_that_is_not_there_is_one_sentence(folder, capfd):
    result, _, err = run(capfd, "verify", "my_ops.py", "--known", "nowhere.toml")
    assert (result, err) == (4, "refssm: nowhere.toml: No such file or directory\n")


def result(verdict="wrong", implementation="my_ops.py", id=VALUE):
    operator, _, check = id.rstrip("]").partition("/")
    return Result(operator, implementation, *check.split("["), verdict)


def test_an_entry_holds_on_its_last_day_and_no_longer(folder):
    path = folder / listed(entry(expires="2026-02-28"))
    for today, failed in ((date(2026, 2, 28), False), (date(2026, 3, 1), True)):
        found = known.read(path, today)
        assert found.marked(result()).failed == failed
        assert bool(found.complaints()) == failed


def test_of_two_entries_the_one_that_still_holds_counts(folder):
    path = folder / listed(entry(expires=PAST), entry("linear_scan/*[float32]"))
    found = known.read(path)
    assert found.marked(result()).expires == FAR
    assert len(found.complaints()) == 1  # the first is still over


NAMES = {
    "my_ops.py": ("my_ops.py", "my_ops.py::scan", "./my_ops.py::scan"),
    "my_ops.py::scan": ("my_ops.py::scan", "./my_ops.py::scan"),
    "ops/my_ops.py": ("ops/my_ops.py",),
    "pkg.ops": ("pkg.ops", "pkg.ops:scan"),
    "pkg.*:scan": ("pkg.ops:scan",),
    "*": ("my_ops.py", "pkg.ops"),
}


@pytest.mark.parametrize("implementation", NAMES)
def test_an_implementation_is_named_by_its_target_with_or_without_its_function(
    folder, implementation
):
    (folder / "ops").mkdir()
    plugin(folder, "", "ops/my_ops.py")
    path = folder / listed(entry(implementation=implementation))
    targets = {name for names in NAMES.values() for name in names}
    meant = {t for t in targets if not known.read(path).marked(result(implementation=t)).failed}
    assert meant == (targets if implementation == "*" else set(NAMES[implementation]))


def test_a_list_names_files_from_its_own_folder(folder, monkeypatch):
    path = folder / listed(entry(implementation="my_ops.py"))
    (folder / "inner").mkdir()
    monkeypatch.chdir(folder / "inner")
    assert not known.read(path).marked(result(implementation="../my_ops.py")).failed


def test_brackets_of_an_id_are_brackets(folder):
    path = folder / listed(entry("linear_scan/value[*32]"))
    assert not known.read(path).marked(result()).failed
    assert known.read(path).marked(result(id="linear_scan/value[float64]")).failed


def test_only_failures_are_known(folder):
    path = folder / listed(entry())
    for verdict in ("wrong", "inaccurate", "error"):
        assert known.read(path).marked(result(verdict)).known == "carries too much"
    for verdict in ("pass", "skipped"):
        assert known.read(path).marked(result(verdict)) == result(verdict)


def test_a_skeleton_is_valid_toml_whatever_a_message_holds(folder):
    awkward = 'raised "x\x00\x1b[1m\\"\n# [[known]]'
    odd = Result("linear_scan", 'my "ops\\.py', "value", "float32", "error", message=awkward)
    path = folder / listed(known.skeleton([odd]).replace('reason = ""', 'reason = "x"'))
    (only,) = known.read(path).entries
    assert only.implementation == odd.implementation
    with pytest.raises(UsageError, match="not empty"):
        known.read(folder / listed(known.skeleton([odd])))
