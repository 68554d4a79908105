"""The pytest plugin: a marked function is a node, and each of its checks is an item."""

import re
from xml.etree import ElementTree

import pytest

import refssm.conformance.running.session  # noqa: F401 - stays loaded from one inner run to the next

pytest_plugins = ["pytester"]

PLUGIN = "refssm.conformance.pytest_plugin"
# an inner run is in this process: its plugins are imported, so it cannot rewrite their assertions
ALONE = ("-rfs", "-p", "no:cacheprovider", "--disable-plugin-autoload", "-p", PLUGIN,
         "-W", "ignore::pytest.PytestAssertRewriteWarning")  # fmt: skip
HEAD = """
import pytest
from refssm import linear_scan, linear_scan_vjp
from refssm.testing import implements
"""
RIGHT = """
@pytest.mark.refssm("linear_scan"OPTIONS)
def test_scan(a, b):
    return linear_scan(a, b)
"""
LATE = """
@pytest.mark.refssm("linear_scan"OPTIONS)
def test_late(a, b):
    x = linear_scan(a, b)
    x[..., 64:65, :] = b[..., 64:65, :]
    return x
"""
QUICK = ["value", "nan", "prefix", "additive", "copies", "repeat", "strides", "readonly",
         "unchanged", "alias", "shapes", "empty"]  # fmt: skip
TYPES = ("float32", "float64", "complex64", "complex128")
LEFT_OUT = [*(f"value[{t}]" for t in TYPES[1:]),
            *(f"{law}[float32]" for law in ("scaling", "zero", "causal", "batch")),
            *(f"{one}[{t}]" for one in ("strides", "alias") for t in TYPES[1:])]  # fmt: skip


@pytest.fixture
def folder(pytester):
    """A folder for a file of tests, which an inner pytest run uses."""

    class Folder:
        path = pytester.path

        def write(self, *texts, options="", head=HEAD):
            pytester.makepyfile(test_ops=head + "".join(texts).replace("OPTIONS", options))
            return self

        def run(self, *arguments, profile="quick"):
            chosen = [f"--refssm-profile={profile}"] if profile else []
            return pytester.runpytest(*ALONE, *chosen, *arguments)

        def ids(self, *arguments, **how):
            """The collected ids."""
            lines = self.run("--collect-only", "-q", *arguments, **how).outlines
            return [line for line in lines if "::" in line]

        def properties(self, *arguments, **how):
            """JUnit's properties of each testcase."""
            self.run("--junitxml=junit.xml", *arguments, **how)
            root = ElementTree.parse(self.path / "junit.xml")
            return {
                case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")}
                for case in root.iter("testcase")
            }

    return Folder()


def outcomes(result):
    """The number of each outcome, without what the profile leaves out and what -k deselects."""
    counts = result.parseoutcomes()
    left_out = [re.search(r"SKIPPED \[(\d+)\] .* not in the profile", x) for x in result.outlines]
    counts["skipped"] = counts.get("skipped", 0) - sum(int(x[1]) for x in left_out if x)
    others = ("warnings", "seconds", "deselected")
    return {k: n for k, n in counts.items() if n and k not in others}


def test_each_check_is_an_item_named_by_its_check_and_type(folder):
    folder.write(RIGHT)
    item, ran = "test_ops.py::test_scan::{}".format, ("value", "split", *QUICK[1:])
    assert folder.ids() == [item(x) for x in (*(f"{c}[float32]" for c in ran), *LEFT_OUT)]
    thorough = folder.ids(profile="thorough")
    assert thorough == folder.ids(profile="")
    assert thorough[:4] == [item(f"value[{t}]") for t in TYPES]
    assert set(folder.ids()) == set(thorough)


def test_collecting_calls_nothing(folder):
    folder.write(RIGHT.replace("return linear_scan(a, b)", "open('called', 'w')"))
    assert len(folder.ids()) == 26
    assert not (folder.path / "called").exists()
    folder.run()
    assert (folder.path / "called").exists()


@pytest.mark.long
def test_a_right_one_passes_and_a_wrong_one_fails_where_it_is_wrong(folder):
    assert outcomes(folder.write(RIGHT).run("-W", "error")) == {"passed": 12, "skipped": 1}
    result = folder.write(RIGHT, LATE).run()
    failed = [line for line in result.outlines if line.startswith("FAILED")]
    assert len(failed) == outcomes(result)["failed"] < 12
    assert all("::test_late::" in line for line in failed)
    assert any("::test_late::value[float32]" in line for line in failed)


def test_other_tests_of_the_file_stay_what_they_are(folder):
    others = "def test_plain(): pass\nclass TestPlain:\n    def test_it(self): assert False\n"
    result = folder.write(RIGHT, others).run("-k", "lain or value")
    assert outcomes(result) == {"passed": 2, "failed": 1}


STRANGE = {
    "unittest.mock.call": "from unittest.mock import call",
    "a mock": "from unittest.mock import Mock; made = Mock()",
    "a lazy object": "class Lazy:\n    def __getattr__(self, name): raise KeyError\nlazy = Lazy()",
}


@pytest.mark.parametrize("what", STRANGE)
def test_what_else_stands_in_a_file_does_not_disturb(folder, what):
    text = f"{STRANGE[what]}\ndef test_plain(): pass\n"
    result = folder.write(text, RIGHT).run("-k", "plain or value")
    assert outcomes(result) == {"passed": 2}


@pytest.mark.long
def test_items_are_chosen_by_keyword_and_by_id(folder):
    folder.write(RIGHT, LATE)
    assert folder.ids("-k", "test_scan and nan") == ["test_ops.py::test_scan::nan[float32]"]
    assert len(folder.ids("-k", "nan or alias")) == 10
    assert len(folder.ids("-k", "not test_scan")) == 26
    assert len(folder.ids("-m", "refssm")) == 52
    assert folder.ids("-m", "not refssm") == []
    one = "test_ops.py::test_late::value[float32]"
    assert outcomes(folder.run(one)) == {"failed": 1}
    assert outcomes(folder.run("test_ops.py::test_scan")) == {"passed": 12, "skipped": 1}
    assert outcomes(folder.run("-x", "-k", "test_late")) == {"failed": 1}


@pytest.mark.long
def test_a_failure_is_the_report_and_no_traceback(folder):
    result = folder.write(LATE).run("-k", "value", profile="default")
    text = result.stdout.str()
    assert "wrong: linear_scan/value[float32]   grade F   ratio " in text
    assert "worst x[0, 64, 0]: got " in text
    assert "every entry with l = 64 wrong, the last of 65, no other" in text
    assert "smallest: l=65 n=1; a=" in text
    assert not re.search(r"Traceback|\.py:\d+: |pytest_plugin|AssertionError", text)


def test_an_exception_of_the_function_is_told_with_its_line(folder):
    text = RIGHT.replace("return linear_scan(a, b)", "raise RuntimeError('boom')")
    out = folder.write(text).run("-k", "value").stdout.str()
    line = (HEAD + text).splitlines().index("    raise RuntimeError('boom')")
    assert f"raised RuntimeError: boom (test_ops.py:{line})" in out


def test_notes_of_a_pass_are_a_section_of_its_report(folder):
    text = RIGHT.replace("(a, b)\n", "(a, b).astype(float)\n").replace(
        "def test_scan", "def test_x"
    )
    text = text.replace("def test_x(a, b).astype(float)", "def test_x(a, b)")
    result = folder.write(text).run("-k", "value", "-rfsP")
    assert outcomes(result) == {"passed": 1}
    assert "`x` is float64, wider than float32" in result.stdout.str()


@pytest.mark.long
def test_a_function_that_is_expected_to_fail_is(folder):
    marked = LATE.replace("@", "@pytest.mark.xfail(reason='known')\n@", 1)
    counts = outcomes(folder.write(marked).run("-k", "value or alias"))
    assert counts == {"xfailed": 1, "xpassed": 1}
    unmarked = outcomes(folder.write(LATE).run("-k", "value or alias"))
    assert unmarked == {"failed": 1, "passed": 1}
    skipped = LATE.replace("@", "@pytest.mark.skip\n@", 1)
    assert outcomes(folder.write(skipped).run()) == {"skipped": 26}


@pytest.mark.long
def test_one_check_may_be_expected_to_fail(folder):
    named = ', xfail={"value[float32]": "carries one"}'
    result = folder.write(LATE, options=named).run("-k", "value or alias", "-rsx")
    assert outcomes(result) == {"xfailed": 1, "passed": 1}
    assert "carries one" in result.stdout.str()
    strict = folder.write(RIGHT, options=named).run("-k", "value", "-o", "xfail_strict=true")
    assert outcomes(strict) == {"failed": 1}
    assert "[XPASS(strict)] carries one" in strict.stdout.str()


def test_an_expectation_that_matches_no_check_fails_beside_the_checks(folder):
    folder.write(RIGHT, options=', xfail={"valeu[float32]": "why"}')
    told = "xfail: no check `valeu[float32]`; did you mean value[float32]? wanted one of value[fl"
    result = folder.run("-k", "nan or mark")
    assert refused(result, told)
    assert outcomes(result) == {"passed": 1, "failed": 1}


@pytest.mark.long
def test_an_expectation_may_name_a_check_that_a_quick_run_leaves_out(folder):
    folder.write(RIGHT, options=', xfail={"value[complex64]": "why"}')
    assert outcomes(folder.run("-k", "float32")) == {"passed": 12, "skipped": 1}


def refused(result, told):
    """True if one item failed with this text, without a traceback; and nothing else did."""
    text, counts = result.stdout.str(), outcomes(result)
    assert {k: n for k, n in counts.items() if k not in ("passed", "skipped")} == {"failed": 1}
    assert not re.search(r"Traceback|\.py:\d+: in", text)
    return told in text


@pytest.mark.long
def test_junit_has_one_testcase_for_each_check_with_its_verdict(folder):
    cases = folder.write(RIGHT, LATE).properties()
    assert set(cases) == {*(f"{c}[float32]" for c in ("split", *QUICK)), *LEFT_OUT}
    assert set(cases["value[float32]"]) == {"verdict", "grade", "ratio", "cases"}
    told = folder.properties("-k", "test_scan and value")["value[float32]"]
    assert (told["verdict"], told["grade"], told["cases"]) == ("pass", "A", "28")
    assert 0 < float(told["ratio"]) < 16
    told = folder.properties("-k", "test_late and value")["value[float32]"]
    assert (told["verdict"], told["grade"]) == ("wrong", "F")
    assert float(told["ratio"]) > 16


@pytest.mark.long
def test_properties_can_be_sent_between_processes(pytester, folder):
    folder.write(RIGHT, LATE)
    reports = pytester.inline_run("--refssm-profile=quick").getreports("pytest_runtest_logreport")
    values = [value for report in reports for _, value in report.user_properties]
    assert len(values) > 4 * 20
    assert {type(value) for value in values} == {str, int, float}


def test_the_profile_is_chosen_on_the_command_line_or_in_the_mark(folder):
    folder.write(RIGHT)
    folder.run("--help")
    assert folder.properties("-k", "zero", profile="default")["zero[float32]"]["cases"] == "10"
    assert folder.properties("-k", "nan")["nan[float32]"]["cases"] == "5"
    quick = folder.write(RIGHT, options=', profile="quick"').run("-k", "value", profile="default")
    assert outcomes(quick) == {"passed": 1}
    result = folder.run(profile="slow")
    assert "argument --refssm-profile: invalid choice: 'slow'" in result.stderr.str()


@pytest.mark.long
def test_the_seed_is_chosen_on_the_command_line_or_in_the_mark(folder):
    def ratio(*arguments, options=""):
        folder.write(RIGHT, options=options)
        return folder.properties("-k", "value", *arguments)["value[float32]"]["ratio"]

    assert ratio() == ratio("--refssm-seed=0") == ratio("--refssm-seed=3", options=", seed=0")
    assert ratio() != ratio("--refssm-seed=3") == ratio(options=", seed=3")


def test_a_type_that_is_not_accepted_is_a_skip_that_says_why(folder):
    picky = "    if b.dtype != 'float32': raise TypeError('single only')\n    return"
    text = RIGHT.replace("    return", picky)
    result = folder.write(text).run("-k", "value", "-rs", profile="default")
    assert outcomes(result) == {"passed": 1, "skipped": 3}
    told = "float64 is not accepted: raised TypeError: single only (test_ops.py:"
    assert told in result.stdout.str()


def test_what_is_not_there_is_a_skip_that_says_so(folder):
    result = folder.write(RIGHT, options=', device="cuda"').run("-rs")
    assert outcomes(result) == {"skipped": 13}
    assert "numpy has no device 'cuda'" in result.stdout.str()
    result = folder.write(RIGHT).run("-k", "split", "-rs")
    assert "needs linear_scan_from" in result.stdout.str()


@pytest.mark.long
def test_the_scan_from_a_state_in_the_same_file_is_what_split_resumes_with(folder):
    resumed = "@implements('linear_scan_from')\ndef resumed(a, b, x0):\n    return {}\n"
    right = "linear_scan(a, b + 0) if 0 else __import__('refssm').linear_scan_from(a, b, x0)"
    result = folder.write(resumed.format(right), RIGHT).run("-k", "split")
    assert outcomes(result) == {"passed": 1}
    result = folder.write(resumed.format("linear_scan(a, b)"), RIGHT).run("-k", "split")
    assert outcomes(result) == {"failed": 1}


@pytest.mark.long
def test_a_gradient_by_hand_is_an_attribute_of_the_function(folder):
    right = RIGHT + "test_scan.vjp = linear_scan_vjp\n"
    result = folder.write(right).run("-k", "gradient and 64", profile="default")
    assert outcomes(result)["passed"] == 2
    wrong = RIGHT + "test_scan.vjp = lambda dx, a, b: linear_scan_vjp(-dx, a, b)\n"
    result = folder.write(wrong).run("-k", "gradient and float32", profile="default")
    assert outcomes(result)["failed"] == 1
