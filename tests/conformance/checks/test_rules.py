"""Every check has one record, the only place with the judge's knowledge about a law."""

import ast
from pathlib import Path
from typing import Any

import pytest

import refssm.conformance
from docs.build import overview
from refssm.catalog import OPERATORS
from refssm.conformance.calling.implementation import Found
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.drawing import SIZES, TAME_SIZE
from refssm.conformance.cases.limits import Limit
from refssm.conformance.cases.ranges import Where
from refssm.conformance.checks import laws
from refssm.conformance.checks.checks import (
    COMPARING,
    GRADIENT,
    NAMES,
    PROFILES,
    STATE,
    VALUE,
    checks_of,
    rule_named,
    rules,
    types_of,
)
from refssm.conformance.checks.conduct import CONDUCT, OF_LENGTHS, OF_STREAMS
from refssm.conformance.checks.law import Law
from refssm.conformance.checks.laws import LAWS
from refssm.conformance.exchange.manifest import CHECKS
from refssm.conformance.judging.verdict import Verdict, wrong
from refssm.conformance.report.lines import below
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from refssm.scan import LINEAR_SCAN, LINEAR_SCAN_FROM
from refssm.vandermonde import VANDERMONDE_KERNEL

JUDGE = Path(refssm.conformance.__file__).parent
PAGE = Path(__file__).parents[3] / overview.CHECKS
# the order of reports, known-failure lists and seeds
ORDER = [
    *("value", "state", "gradient", "against", "against_gradient"),
    *("split", "nan", "prefix", "additive", "scaling", "zero", "causal", "shift", "batch", "group"),
    *("joined", "rollback", "copies", "summed", "repeat", "strides", "readonly", "unchanged"),
    *("alias", "shapes"),
    *("empty", "flags", "lengths", "stream"),
]


def results(op, **settings):
    """The judge's results for an operator's own reference."""
    settings = {"types": ("float32",), "shrink": False, "folder": None} | settings
    session = Session(InProcess([Found(op, op.reference, None)]), "here", Settings(**settings))
    return list(results_of(session))


def failing(candidate, case):
    """A law that always fails."""
    del candidate, case
    return wrong("nobody obeys this law")


def law(**fields):
    """A law for operators with a state."""
    usual: dict[str, Any] = {"name": "new", "sentence": "Nobody obeys this law.", "hold": failing}
    return Law(**{**usual, "owed": lambda op: "state" in op.traits, **fields})


@pytest.fixture
def listed(monkeypatch):
    """Adds one more law to the table."""
    return lambda new: monkeypatch.setattr(laws, "LAWS", (*LAWS, new))


def test_the_names_of_checks_are_those_of_the_records_in_their_order():
    assert list(NAMES) == [rule.name for rule in rules()] == ORDER
    conduct = (*CONDUCT, *OF_LENGTHS, *OF_STREAMS)
    assert rules() == (VALUE, STATE, GRADIENT, *COMPARING, *LAWS, *conduct)
    assert all(rule_named(rule.name) is rule for rule in rules())


def test_every_check_of_every_operator_has_a_record_of_the_table():
    seen = set()
    for op in OPERATORS:
        types, vjp = types_of(op, half=True), op.differentiable
        checks = checks_of(op, PROFILES["thorough"], types, vjp=vjp, streams=True, lengths="n")
        assert all(any(check.rule is rule for rule in rules()) for check in checks)
        order = [NAMES.index(check.name) for check in checks]
        assert order == sorted(order)
        seen |= {check.name for check in checks}
    assert seen | {rule.name for rule in COMPARING} == set(NAMES)


def test_the_checks_that_folders_of_cases_hold_are_checks_of_the_table():
    assert set(CHECKS) <= set(NAMES)


def test_the_page_of_the_judge_says_of_each_check_what_its_record_says():
    page = PAGE.read_text("utf-8")
    written = page.partition(overview.BEGIN)[2].partition(overview.END)[0]
    rows = [line for line in written.splitlines() if line.startswith("| `")]
    wanted = [f"| `{rule.name}` | {rule.sentence} |" for rule in rules()]
    assert rows == wanted
    assert overview.with_checks(page) == page  # make tables


@pytest.mark.long
def test_a_law_in_the_table_is_run_where_it_is_owed_and_only_there(listed):
    assert results(LINEAR_SCAN, only_checks=("new",)) == []
    listed(law())
    (result,) = results(LINEAR_SCAN, only_checks=("new",))
    assert result.failed
    assert result.id == "linear_scan/new[float32]"
    assert result.message == "nobody obeys this law"
    assert any("case" in line for line in below(result))
    assert [r.check for r in results(LINEAR_SCAN) if r.failed] == ["new"]
    assert results(VANDERMONDE_KERNEL, only_checks=("new",), types=("complex64",)) == []


def test_what_a_record_says_of_its_law_is_obeyed(listed):
    def told(new, **settings):
        listed(new)
        (result,) = results(LINEAR_SCAN, only_checks=("new",), **settings)
        return result.message

    assert told(law(needs=lambda op: "linear_step")) == "needs linear_step"
    narrowed = {"where": Where({"a": (Limit("", 0.5, 1.0),)})}
    reason = "tries other values of `a`, which `where` limits"
    assert told(law(touches=lambda op: ["a"]), **narrowed) == reason
    assert told(law(touches=lambda op: ["b"]), **narrowed) == "nobody obeys this law"
    shorter = {"where": Where({}, {"l": (1, 9)})}
    assert told(law(cuts=True), **shorter) == "tries other sizes l, which `where` limits"
    assert told(law(cuts=False), **shorter) == "nobody obeys this law"


def test_a_law_is_left_out_in_the_16_bit_types_that_its_record_names(listed):
    listed(law(halves=("float16",)))
    for dtype, run in (("float16", False), ("bfloat16", True), ("float32", True)):
        checks = checks_of(LINEAR_SCAN, PROFILES["default"], [dtype], vjp=False)
        assert ("new" in [check.name for check in checks]) == run


def test_a_law_draws_tame_cases_where_its_record_says_so(listed):
    for tame in (False, True):
        listed(law(tame=tame))
        checks = checks_of(LINEAR_SCAN, PROFILES["default"], ["float32"], vjp=False)
        (check,) = [check for check in checks if check.name == "new"]
        assert check.strategy is not None
        assert check.strategy["tame"] == tame


@pytest.mark.parametrize("tame", [False, True])
def test_the_report_says_of_a_law_how_long_its_cases_were(listed, tame):
    listed(law(hold=lambda candidate, case: Verdict("A"), tame=tame))
    (result,) = results(LINEAR_SCAN, only_checks=("new",))
    assert result.verdict == "pass"
    longest = TAME_SIZE if tame else max(SIZES)
    assert below(result) == [f"not tested: types other than float32, l above {longest}"]


def test_split_needs_the_form_that_starts_from_a_state():
    split = rule_named("split")
    assert split.missing(LINEAR_SCAN, ["linear_scan"]) == "needs linear_scan_from"
    assert split.missing(LINEAR_SCAN, ["linear_scan", "linear_scan_from"]) == ""
    assert split.missing(LINEAR_SCAN_FROM, ["linear_scan_from"]) == ""


def asked_by_name(text):
    """The names of laws and conduct checks that a program uses in comparisons."""
    names, found = {rule.name for rule in (*LAWS, *CONDUCT)}, []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            places = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            places = node.args if node.func.attr in ("startswith", "index", "count") else []
        else:
            continue
        words = [n for place in places for n in ast.walk(place) if isinstance(n, ast.Constant)]
        found += [word.value for word in words if word.value in names]
    return found


def test_no_file_of_the_judge_asks_for_a_law_by_its_name():
    planted = JUDGE / "planted"
    files = [path for path in JUDGE.rglob("*.py") if planted not in path.parents]
    assert len(files) > 60
    told = {
        str(path.relative_to(JUDGE)): asked_by_name(path.read_text(encoding="utf-8"))
        for path in files
    }
    # traits, dimensions and maps with the same names
    known = {
        "cases/drawing.py": ["zero"],
        "checks/special_values.py": ["causal"],
        "checks/time_laws.py": ["causal", "causal"],
    }
    assert {name: names for name, names in told.items() if names} == known


@pytest.mark.parametrize(
    "text",
    [
        'check.name == "nan"',
        '"split" != name',
        'name in ("prefix", "split")',
        'd.caught_by.startswith("repeat")',
    ],
)
def test_a_law_asked_for_by_its_name_is_seen(text):
    assert asked_by_name(text)
