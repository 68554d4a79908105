"""pytest in a project: the effect of [tool.refssm] and known failures on the items."""

from importlib.metadata import entry_points
from xml.etree import ElementTree

import pytest
from listing import FAR, PAST, VALUE, entry
from test_pytest_plugin import ALONE, HEAD, LATE, PLUGIN, RIGHT, outcomes, refused

pytest_plugins = ["pytester"]
QUICK = '[tool.refssm]\nprofile = "quick"\n'
KNOWN = QUICK + 'known-failures = "known.toml"\n'


@pytest.fixture
def project(pytester):
    """A folder with tests, a pyproject.toml and a list; an inner pytest run uses it."""

    def made(*texts, table=KNOWN, listed=(), options=()):
        text = HEAD + "".join(texts).replace("OPTIONS", "")
        pytester.makepyfile(test_ops=text)
        (pytester.path / "pyproject.toml").write_text(table, encoding="utf-8")
        (pytester.path / "known.toml").write_text("\n".join(listed), encoding="utf-8")
        return pytester.runpytest(*ALONE, "-rsxX", *options)

    return made


def cases(path):
    """JUnit's testcases by name."""
    return {c.get("name"): c for c in ElementTree.parse(path).getroot().iter("testcase")}


def test_pytest_finds_the_plugin_by_its_entry_point():
    (found,) = entry_points(group="pytest11", name="refssm")
    assert found.value == PLUGIN


@pytest.mark.long
def test_a_listed_failure_is_expected_with_its_reason(project):
    result = project(LATE, listed=[entry()], options=("-k", "value or alias"))
    assert outcomes(result) == {"xfailed": 1, "passed": 1}
    assert f"carries too much (known until {FAR})" in result.stdout.str()


def test_a_listed_check_that_passes_fails(project):
    result = project(RIGHT, listed=[entry()], options=("-k", "value"))
    assert outcomes(result) == {"failed": 1}
    assert "[XPASS(strict)] carries too much" in result.stdout.str()


@pytest.mark.long
@pytest.mark.parametrize("text", [RIGHT, LATE], ids=["passing", "failing"])
def test_an_entry_whose_day_is_over_fails(project, text):
    result = project(text, listed=[entry(expires=PAST)], options=("-k", "value"))
    assert outcomes(result) == {"failed": 1}
    told = f"known.toml: {VALUE} expired on {PAST}: carries too much"
    assert told in result.stdout.str()
    assert ("it passes now: remove it" in result.stdout.str()) == (text == RIGHT)


IMPLEMENTATIONS = ("test_late", "test_ops.py", "test_ops.py::test_late", "*late")


@pytest.mark.long
@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_an_entry_is_of_the_function_or_of_the_file_that_it_names(project, name):
    own = entry(implementation=name)
    result = project(LATE, listed=[own], options=("-k", "value"))
    assert outcomes(result) == {"xfailed": 1}


@pytest.mark.long
def test_an_entry_of_another_function_hides_nothing(project):
    result = project(LATE, listed=[entry(implementation="test_other")], options=("-k", "value"))
    assert outcomes(result) == {"failed": 1}


@pytest.mark.long
def test_an_entry_that_matches_no_check_of_the_function_it_names_fails_as_an_item(project):
    own = entry("linear_scan/gradient[float32]", implementation="test_scan")
    result = project(RIGHT, listed=[own])
    assert refused(
        result, "known.toml: linear_scan/gradient[float32] of test_scan matches none of its checks"
    )


@pytest.mark.long
def test_a_pattern_and_a_law_of_a_quick_run_may_pass(project):
    listed = [entry("linear_scan/*[*]"), entry("linear_scan/prefix[float32]")]
    result = project(LATE, listed=listed, options=("-k", "value or alias or prefix"))
    assert set(outcomes(result)) == {"xfailed", "xpassed"}


@pytest.mark.long
def test_the_project_says_how_much_is_judged(project):
    table = '[tool.refssm]\ndtypes = ["float64"]\nchecks = ["value", "zero"]\nseed = 3\n'
    result = project(RIGHT, table=table, options=("-v", "--junitxml=j.xml"))
    assert outcomes(result) == {"passed": 2}
    assert set(cases("j.xml")) == {"value[float64]", "zero[float64]"}
    one = ("-k", "value", "--junitxml=j.xml")
    ratios = []
    for options in ((), ("--refssm-seed=3",), ("--refssm-seed=4",)):
        project(RIGHT, table=table, options=(*one, *options))
        (ratio,) = (p for p in cases("j.xml")["value[float64]"].iter("property")
                    if p.get("name") == "ratio")  # fmt: skip
        ratios.append(ratio.get("value"))
    assert ratios[0] == ratios[1] != ratios[2]


def test_the_command_line_comes_before_the_project(project):
    result = project(RIGHT, options=("--refssm-profile=default", "-k", "zero"))
    assert result.parseoutcomes()["passed"] == 1
    result = project(RIGHT, options=("-k", "zero"))
    assert result.parseoutcomes()["skipped"] == 1


TABLES = {
    "a slip": (
        QUICK.replace("profile", "profle"),
        (),
        "unknown key 'profle'; did you mean profile?",
    ),
    "no list": (KNOWN.replace("known.toml", "no.toml"), (), "no.toml: No such file or directory"),
    "a malformed list": (KNOWN, [entry(reason="")], "`reason`: wanted a text"),
    "no type of it": (QUICK + 'dtypes = ["float16"]', (), "linear_scan is judged only in"),
}


@pytest.mark.parametrize("what", TABLES)
def test_what_is_wrong_with_them_fails_as_an_item(project, what):
    table, listed, told = TABLES[what]
    text = RIGHT if what != "no type of it" else CAUCHY
    result = project(text, table=table, listed=listed)
    assert refused(result, told.replace("linear_scan", "cauchy_kernel"))


CAUCHY = """
@pytest.mark.refssm("cauchy_kernel")
def test_kernel(v, w, z):
    return v
"""


def test_a_file_without_marks_does_not_read_the_table(project):
    result = project("def test_plain(): pass\n", table="nonsense = [")
    assert "did you mean" not in result.stdout.str()
    result = project("def test_plain(): pass\n", table="[tool.refssm]\nnonsense = 1\n")
    assert outcomes(result) == {"passed": 1}


@pytest.mark.long
def test_junit_has_the_verdict_in_the_message(project):
    raising = RIGHT.replace("return linear_scan(a, b)", "raise KeyError('lost')")
    project(
        LATE,
        raising,
        listed=[entry("linear_scan/alias[float32]", implementation="test_scan")],
        options=("--junitxml=j.xml", "-k", "float32 and (value or nan or split or alias)"),
    )
    root = ElementTree.parse("j.xml").getroot()
    told = {}
    for case in root.iter("testcase"):
        outcome = [child for child in case if child.tag in ("failure", "skipped")]
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        parts = [(o.tag, o.get("message"), o.text or "") for o in outcome]
        told[name] = parts[0] if parts else ("passed", "", "")
    assert len(told) == 8
    tag, message, text = told["test_late::value[float32]"]
    assert (tag, message[:21]) == ("failure", "F linear_scan: x[0,64")
    assert "\nwrong: linear_scan/value[float32]   grade F   ratio" in text
    assert "worst x[" in text
    tag, message, text = told["test_scan::value[float32]"]
    assert (tag, message[:43]) == ("failure", "error linear_scan: raised KeyError: 'lost' ")
    assert "\n" not in message
    assert "\nerror: linear_scan/value[float32]" in text
    assert told["test_late::split[float32]"][:2] == (
        "skipped",
        "split[float32]: needs linear_scan_from, a marked function of test_ops.py",
    )
    skip = told["test_scan::alias[float32]"][:2]
    assert skip == ("skipped", f"carries too much (known until {FAR})")
    assert told["test_late::alias[float32]"][0] == "passed"
