"""The table of public repositories: rows from results, remarks kept, the page as it is stored."""

from pathlib import Path

import pytest

from selftest import field
from selftest.field import Judged, merged, page, read, rows_of, told, verdict

DOCS = Path(__file__).parents[2] / "docs"


def result(check, verdict, dtype="float32", grade="A", bits=22.0, digits=24):
    of = {"check": check, "verdict": verdict, "dtype": dtype, "grade": grade, "function": ""}
    return {**of, "operator": "ssd_chunked_stateful", "bits": bits, "digits": digits}


PASSED = [
    result("value", "pass"),
    result("value", "pass", "float64", "N", 12.4, 53),
    result("empty", "skipped", "complex64", "-"),
]


def test_a_row_has_types_grades_and_the_least_bits(monkeypatch):
    monkeypatch.setattr(field, "path_of", lambda name: None)
    (row,) = rows_of("mamba2-minimal", "mamba2_minimal", PASSED)
    assert row.repository == "tommyip/mamba2-minimal"
    assert (row.types, row.verdict, row.bits) == ("f4 f8", "right, A, N", "12 of 53")
    assert row.plugin == "mamba2_minimal::ssd_chunked_stateful"
    assert (row.operator, row.function) == told("mamba2_minimal")["ssd_chunked_stateful"]
    assert row.function


def test_two_functions_of_one_operator_have_a_row_each(monkeypatch):
    monkeypatch.setattr(field, "path_of", lambda name: None)
    by = [
        {**result("value", word), "operator": "causal_convolution", "function": function}
        for function, word in (("toeplitz", "pass"), ("toeplitz_fast", "wrong"))
    ]
    rows = [(row.plugin, row.verdict) for row in rows_of("s4", "s4", by)]
    assert rows == [("s4::toeplitz", "right, A"), ("s4::toeplitz_fast", "WRONG: value")]


def test_every_stored_row_is_of_a_function_that_there_is(monkeypatch):
    monkeypatch.chdir(DOCS.parent)
    for row in read():
        plugin, _, function = row.plugin.partition("::")
        assert told(plugin)[function] == (row.operator, row.function)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([result("nan", "wrong")], "WRONG: nan"),
        ([result("value", "inaccurate"), result("nan", "error")], "ERROR: nan; INACCURATE: value"),
        ([result("causal", "thin")], "right, A, N; thin: causal"),
    ],
)
def test_failures_come_first_and_no_grade_beside_them(more, said):
    assert verdict([*PASSED[:2], *more]) == said


def test_a_remark_stays_when_its_row_is_made_again():
    old = [
        Judged("a/b", "1", "one::f", "f", "linear_scan", "f4", "right, A", "22 of 24", "a remark"),
        Judged("a/c", "1", "two::f", "f", "linear_scan", "f4", "right, A", "22 of 24", "another"),
    ]
    new = [Judged("a/b", "2", "one::f", "f", "linear_scan", "f8", "WRONG: nan", "1 of 53")]
    rows = merged(old, new, {"one"})
    assert [(r.commit, r.finding) for r in rows] == [("2", "a remark"), ("1", "another")]
    assert merged(old, [], {"one"}) == old[1:]


def test_the_page_has_a_row_for_each_repository_between_its_marks():
    text = f"before\n{field.BEGIN}\nold\n{field.END}\nafter\n"
    row = Judged("a/b", "1", "one", "f", "linear_scan", "f4", "right, A", "22 of 24")
    rows = [
        row,
        row._replace(verdict="WRONG: nan; INACCURATE: value", finding="x | y"),
        row._replace(verdict="WRONG: nan", finding="z"),
        row._replace(commit="2", verdict="ERROR: nan", finding="x | y"),
        row._replace(repository="c/d", verdict="right, A; thin: causal"),
    ]
    found = page(text, rows)
    assert found.startswith("before\n")
    assert found.endswith(f"{field.END}\nafter\n")
    assert "| a/b | 1, 2 | 4 | 1 | 2 | 1 |  | x \\| y; z |" in found
    assert "| c/d | 1 | 1 | 1 |  |  |  |  |" in found
    assert "old" not in found


def test_every_stored_row_is_counted(monkeypatch):
    monkeypatch.chdir(DOCS.parent)
    kinds = [row.verdict.replace(",", ":").partition(":")[0] for row in read()]
    assert kinds
    assert set(kinds) <= set(field.KINDS)


def test_the_page_of_findings_is_what_the_rows_say(monkeypatch):
    monkeypatch.chdir(DOCS.parent)
    text = (DOCS / "findings.md").read_text(encoding="utf-8")
    assert page(text, read()) == text
