"""The recorded verdicts contain all planted bugs and honest programs, and a change is detected."""

import shutil
from pathlib import Path

import pytest
from honest import implementations
from typer.testing import CliRunner

from refssm.conformance.planted import planted_bugs
from selftest import verdicts

FOLDER = Path(__file__).parents[1] / "verdicts"
PLANTED, HONEST = (verdicts.read(FOLDER / f"{kind}.csv") for kind in ("planted", "honest"))
ONE = "hope_recency_power"


def compare(folder):
    """Exit code and lines of the command for one operator."""
    arguments = ["compare", str(folder), "--only", ONE, "--workers", "1"]
    result = CliRunner().invoke(verdicts.app, arguments)
    return result.exit_code, result.output.splitlines()


def test_every_planted_bug_is_recorded_with_its_check_and_was_caught():
    recorded = [(r["operator"], r["bug"], r["what"], r["check"]) for r in PLANTED]
    assert sorted(recorded) == sorted((b.op, b.name, b.what, b.caught_by) for b in planted_bugs())
    assert {r["verdict"] for r in PLANTED} == {"wrong", "inaccurate", "error"}


def test_every_honest_implementation_is_recorded_and_none_was_rejected():
    recorded = {(r["operator"], r["implementation"]) for r in HONEST}
    assert recorded == {(h.op, h.name) for h in implementations() if not h.needs}
    assert {r["verdict"] for r in HONEST} == {"pass", "nothing judged"}


@pytest.mark.long
def test_one_operator_still_has_the_verdicts_that_are_recorded():
    code, lines = compare(FOLDER)
    assert [line.rpartition(", ")[2] for line in lines] == ["0 lines of difference"] * 2
    assert code == 0


@pytest.mark.long
@pytest.mark.parametrize("kind", ["planted", "honest"])
def test_another_verdict_is_told_with_both_lines_and_exit_code_1(kind, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "verdicts")
    path = tmp_path / "verdicts" / f"{kind}.csv"
    head, _, row = path.read_text(encoding="utf-8").partition(f"\n{ONE},")
    now = row.split("\n")[0]
    other = f"{now.rpartition(',')[0]},{'B' if kind == 'planted' else 'rejected'}"
    path.write_text(f"{head}\n{ONE},{row.replace(now, other, 1)}", encoding="utf-8")
    code, lines = compare(tmp_path / "verdicts")
    assert code == 1
    assert [line[0] for line in lines if line[0] in "-+"] == ["-", "+"]
