"""The recorded verdicts cover all planted bugs and honest programs, and a change is detected."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from honest import implementations
from typer.testing import CliRunner

from refssm.conformance.planted import planted_bugs
from selftest import verdicts

FOLDER = Path(__file__).parents[1] / "verdicts"
ONE = "hope_recency_power"
BUG = {"operator": "krylov_kernel", "bug": "sign", "what": "−k", "check": "value[float32]"}
TEST = {"operator": "krylov_kernel", "implementation": "powers", "check": "nan[float32]"}
MADE_UP = {
    "planted": [
        BUG | {"verdict": "wrong", "grade": "F"},
        BUG | {"bug": "tf32", "what": "tf32, or worse", "verdict": "inaccurate", "grade": "C"},
        BUG | {"operator": "linear_scan", "verdict": "wrong", "grade": "F"},
    ],
    "honest": [
        TEST | {"verdict": "pass"},
        TEST | {"implementation": "loop", "verdict": "nothing judged"},
        TEST | {"operator": "linear_scan", "verdict": "pass"},
    ],
}


def recorded(kind):
    return verdicts.read(FOLDER / f"{kind}.csv")


def counted(kind, column):
    rows = verdicts.read(FOLDER / f"{kind}_counts.csv")
    return {row["operator"]: int(row[column]) for row in rows}


def called(*arguments):
    """Exit code and lines of the command."""
    result = CliRunner().invoke(verdicts.app, [*map(str, arguments), "--workers", "1"])
    return result.exit_code, result.output.splitlines()


def changed(lines):
    return [line for line in lines if line[0] in "-+"]


def test_every_planted_bug_is_counted_and_each_exception_was_caught():
    bugs = planted_bugs()
    assert counted("planted", "bugs") == Counter(b.op for b in bugs)
    named = {(b.op, b.name, b.what, b.caught_by) for b in bugs}
    exceptions = recorded("planted")
    assert {(r["operator"], r["bug"], r["what"], r["check"]) for r in exceptions} <= named
    assert {r["verdict"] for r in exceptions} == {"inaccurate", "error"}


def test_every_honest_implementation_is_counted_and_none_was_rejected():
    here = {(h.op, h.name) for h in implementations() if not h.needs}
    assert counted("honest", "implementations") == Counter(op for op, _ in here)
    exceptions = recorded("honest")
    assert {(r["operator"], r["implementation"]) for r in exceptions} <= here
    assert {r["verdict"] for r in exceptions} == {"nothing judged"}


@pytest.fixture
def judged(monkeypatch):
    """Made-up verdicts by file, as if they had been judged now."""
    now = {kind: [dict(row) for row in rows] for kind, rows in MADE_UP.items()}

    def all_rows(only, workers, kinds, seed):
        return {k: [r for r in now[k] if verdicts.soak.among(r["operator"], only)] for k in kinds}

    monkeypatch.setattr(verdicts, "all_rows", all_rows)
    return now


def test_only_exceptions_and_counts_are_written(judged, tmp_path):
    code, lines = called("write", tmp_path)
    assert (code, len(lines)) == (0, 2)
    assert lines[0] == f"planted: 3 verdicts, 1 of them exceptions, in {tmp_path}"
    assert verdicts.read(tmp_path / "planted.csv") == [judged["planted"][1]]
    assert verdicts.read(tmp_path / "honest.csv") == [judged["honest"][1]]
    texts = [
        (tmp_path / f"{kind}_counts.csv").read_text(encoding="utf-8").splitlines()
        for kind in MADE_UP
    ]
    assert texts[0] == ["operator,bugs", "krylov_kernel,2", "linear_scan,1"]
    assert texts[1][1:] == ["krylov_kernel,2,2", "linear_scan,1,1"]
    assert changed(called("compare", tmp_path)[1]) == []


def test_rows_of_operators_that_were_not_asked_for_stay(judged, tmp_path):
    called("write", tmp_path)
    judged["planted"][1] |= {"verdict": "wrong", "grade": "F"}  # no exception any more
    judged["planted"][2] |= {"verdict": "pass", "grade": "A"}
    del judged["honest"][0]
    called("write", tmp_path, "--only", "linear_scan")
    assert [r["operator"] for r in verdicts.read(tmp_path / "planted.csv")] == [
        "krylov_kernel", "linear_scan"
    ]  # fmt: skip
    assert [r["verdicts"] for r in verdicts.read(tmp_path / "honest_counts.csv")] == ["2", "1"]
    called("write", tmp_path, "--only", "krylov_kernel")
    assert [r["operator"] for r in verdicts.read(tmp_path / "planted.csv")] == ["linear_scan"]
    assert [r["verdicts"] for r in verdicts.read(tmp_path / "honest_counts.csv")] == ["1", "1"]
    assert changed(called("compare", tmp_path)[1]) == []


CHANGES = {  # what a row of MADE_UP becomes, and the lines about it
    "a bug that the rule covers passes": (
        ("planted", 0, {"verdict": "pass", "grade": "A"}),
        ["- krylov_kernel, sign, −k, value[float32], wrong, F",
         "+ krylov_kernel, sign, −k, value[float32], pass, A"],
    ),
    "an exception is one no longer": (
        ("planted", 1, {"verdict": "wrong", "grade": "F"}),
        ["- krylov_kernel, tf32, tf32, or worse, value[float32], inaccurate, C",
         "+ krylov_kernel, tf32, tf32, or worse, value[float32], wrong, F"],
    ),
    "an exception is another one": (
        ("planted", 1, {"grade": "B"}),
        ["- krylov_kernel, tf32, tf32, or worse, value[float32], inaccurate, C",
         "+ krylov_kernel, tf32, tf32, or worse, value[float32], inaccurate, B"],
    ),
    "a bug is lost": (
        ("planted", 0, None),
        ["- krylov_kernel, 2 bugs", "+ krylov_kernel, 1 bugs"],
    ),
    "an exception is lost": (
        ("planted", 1, None),
        ["- krylov_kernel, tf32, tf32, or worse, value[float32], inaccurate, C",
         "- krylov_kernel, 2 bugs", "+ krylov_kernel, 1 bugs"],
    ),
    "an operator is lost": (("planted", 2, None), ["- linear_scan, 1 bugs"]),
    "a bug is new": (
        ("planted", 3, BUG | {"bug": "late", "verdict": "wrong", "grade": "F"}),
        ["- krylov_kernel, 2 bugs", "+ krylov_kernel, 3 bugs"],
    ),
    "an honest program is rejected": (
        ("honest", 0, {"verdict": "rejected"}),
        ["- krylov_kernel, powers, nan[float32], pass",
         "+ krylov_kernel, powers, nan[float32], rejected"],
    ),
    "an honest program is judged that was not": (
        ("honest", 1, {"verdict": "pass"}),
        ["- krylov_kernel, loop, nan[float32], nothing judged",
         "+ krylov_kernel, loop, nan[float32], pass"],
    ),
    "a check is new": (
        ("honest", 3, TEST | {"check": "value[float32]", "verdict": "pass"}),
        ["- krylov_kernel, 2 implementations, 2 verdicts",
         "+ krylov_kernel, 2 implementations, 3 verdicts"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_every_change_has_its_lines(what, judged, tmp_path):
    called("write", tmp_path)
    (kind, place, new), lines = CHANGES[what]
    old = judged[kind][place : place + 1]
    judged[kind][place : place + 1] = [] if new is None else [dict(*old) | new]
    judged[kind].sort(key=lambda row: row["operator"])
    code, found = called("compare", tmp_path)
    assert changed(found) == lines
    assert code == 1
    assert called("compare", tmp_path, "--only", "causal_convolution")[0] == 0


def test_a_folder_with_figures_has_every_verdict_and_the_ratios_are_compared(judged, tmp_path):
    for rows in judged.values():
        for row in rows:
            row |= {"ratio": "0.5", "message": ""}
    called("write", tmp_path)
    called("write", tmp_path, "--figures")
    assert [*verdicts.read(tmp_path / "planted.csv")] == judged["planted"]
    assert changed(called("compare", tmp_path)[1]) == []
    judged["honest"][0]["ratio"] = "0.75"
    code, lines = called("compare", tmp_path)
    assert [line.rpartition(", ")[2] for line in changed(lines)] == ["0.5", "0.75"]
    assert code == 1


@pytest.mark.long
def test_one_operator_still_has_the_verdicts_that_are_recorded():
    code, lines = called("compare", FOLDER, "--only", ONE)
    assert [line.rpartition(", ")[2] for line in lines] == ["0 lines of difference"] * 2
    assert code == 0


@pytest.mark.long
@pytest.mark.parametrize("kind", ["planted", "honest"])
def test_another_verdict_is_told_with_both_lines_and_exit_code_1(kind, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "verdicts")
    path = tmp_path / "verdicts" / f"{kind}.csv"
    rows = verdicts.of_operator(ONE, (kind,))[kind]
    now = next(row for row in rows if row["verdict"] == verdicts.RULE[kind]["verdict"])
    other = now | ({"grade": "B"} if kind == "planted" else {"verdict": "rejected"})
    text = ",".join(other[column] for column in verdicts.COLUMNS[kind])
    path.write_text(f"{path.read_text(encoding='utf-8')}{text}\n", encoding="utf-8")
    code, lines = called("compare", tmp_path / "verdicts", "--only", ONE)
    assert code == 1
    assert [line[0] for line in changed(lines)] == ["-", "+"]
