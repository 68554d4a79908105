"""The soak: it can be resumed, and fails if an honest program is rejected."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from refssm.conformance.calling.fingerprint import LEFT_OUT
from selftest import soak, stored


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    stored.write(stored.SOAK, [OLD])
    monkeypatch.setattr(soak, "pieces", lambda seeds, cases, first: PIECES[first:seeds])
    return tmp_path


OLD = stored.Soaked("old", "loop", "2", "7", "0.5", "split[float32]", "0", "2026-11-22", "b01ecc3")
PIECES = [
    ("cauchy_kernel", "cauchy_kernel/value[complex64]", 0, 3),
    ("cauchy_kernel", "cauchy_kernel/zero[complex64]", 0, 3),
    ("linear_scan", "linear_scan/split[float32]", 0, 2),
]


def run(seeds, first=0):
    with pytest.raises(typer.Exit) as done:
        soak.main(seeds=seeds, cases=3, workers=1, first=first, only="")
    return done.value.exit_code


def test_a_soak_goes_on_where_it_was_interrupted(folder, capsys):
    assert run(2) == 0
    recorded = soak.record().read_text(encoding="utf-8").splitlines()
    with soak.record().open("a", encoding="utf-8") as record:
        record.write('{"operator": "linear_sc')  # a line that was cut off
        record.write("\n")
    assert run(3) == 0
    assert soak.record().read_text(encoding="utf-8").splitlines()[:2] == recorded
    assert "3 pieces, 0 rejections" in capsys.readouterr().out
    page = stored.SOAK_PAGE.read_text(encoding="utf-8")
    found = stored.read(stored.SOAK, stored.Soaked)
    cauchy = [row for row in found if row.operator == "cauchy_kernel"]
    (numba,) = (row for row in cauchy if row.implementation == "numba")
    assert (numba.cases, numba.check, numba.rejected) == ("6", "value[complex64]", "0")
    row = next(line for line in page.splitlines() if line.startswith("| cauchy_kernel | "))
    counts = rf"\| cauchy_kernel \| {len(cauchy)} \| 2 \| 6 \| "
    assert re.match(rf"{counts}[0-9.]+ \| \w+ \| value\[complex64\] \| 0 \| 20", row)
    assert page == stored.soak_page(found)
    assert {row.operator for row in found} == {"cauchy_kernel", "linear_scan"}


def test_seeds_from_another_one_on_come_to_those_of_the_rows_that_stand(folder):
    def numba():
        rows = stored.read(stored.SOAK, stored.Soaked)
        of_cauchy = (r for r in rows if r.operator == "cauchy_kernel")
        return next(r for r in of_cauchy if r.implementation == "numba")

    assert run(1) == 0
    assert (numba().seeds, numba().cases) == ("1", "3")
    assert run(2, first=1) == 0
    assert (numba().seeds, numba().cases) == ("2", "6")


def test_a_rejection_is_told_counted_and_fails(folder, capsys):
    assert run(1) == 0
    piece = json.loads(soak.record().read_text(encoding="utf-8"))
    piece["rejected"] = ["numba: l=1: planted"]
    soak.record().write_text(json.dumps(piece) + "\n", encoding="utf-8")
    assert run(1) == 1
    assert "1 rejections" in capsys.readouterr().out
    (row,) = (r for r in stored.read(stored.SOAK, stored.Soaked) if r.implementation == "numba")
    assert row.rejected == "1"


@pytest.fixture
def nothing_kept():
    """No workers of other programs before, and none of a test's own programs after it."""
    for kept in (soak._twins, soak._worker):
        kept.cache_clear()
    yield
    for kept in (soak._twins, soak._worker):
        kept.cache_clear()


@pytest.mark.usefixtures("nothing_kept")
def test_a_wrong_implementation_among_the_honest_is_rejected(folder, monkeypatch):
    honest = [h for h in soak.implementations() if h.op == "cauchy_kernel"][:1]
    wrong = soak.Honest("cauchy_kernel", "wrong", lambda v, w, z: -honest[0].forward(v, w, z))
    monkeypatch.setattr(soak, "implementations", lambda: [*honest, wrong])
    piece = soak.run_piece(*PIECES[0])
    assert {text.partition(":")[0] for text in piece["rejected"]} == {"wrong"}


def test_the_seeds_of_an_operator_go_round_all_its_checks_that_draw_cases():
    pieces = soak.pieces(30, 10)
    checks = [check for name, check, _, _ in pieces if name == "linear_scan"]
    assert len(checks) == 30
    for name in ("value[float64]", "gradient[complex64]", "split[float32]", "nan[float32]"):
        assert f"linear_scan/{name}" in checks
    assert {name for name, _, _, _ in pieces} == {h.op for h in soak.implementations()}
    assert soak.pieces(30, 10) == soak.pieces(20, 10) + soak.pieces(30, 10, first=20)


def test_each_seed_draws_other_cases_and_some_draw_long_and_wide_ones():
    (check,) = (c for c in soak._checks("rwkv6") if c.id == "rwkv6/value[float32]")
    drawn = [case for turn in range(40) for case in soak.drawn(check, 1, turn, turn)]
    sizes = [tuple(case.sizes.values()) for case in drawn]
    assert len(set(sizes)) > 20  # the simplest case of each seed has the same
    assert len(drawn) == 40 + 40 // soak.LARGE
    assert max(case.sizes["l"] for case in drawn) > 1000
    assert max(case.sizes["n"] for case in drawn) >= 128
    first = list(soak.drawn(check, 1, 0, 0))
    assert len(first) == 2  # a soak of few seeds has long cases, too
    assert first[1].sizes["l"] > 1000
    five = list(soak.drawn(check, 5, 1, 0))
    assert len(five) == 5
    assert [case.preset is not None for case in five].count(True) == 1


def test_what_other_sources_did_does_not_count(folder, tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text("a = 1", encoding="utf-8")
    monkeypatch.setattr(soak, "SOURCES", tmp_path)
    before = soak.record()
    (tmp_path / "one.py").write_text("a = 2", encoding="utf-8")
    assert soak.record() != before


def test_sources_that_decide_no_verdict_may_change_while_a_soak_goes_on(folder, monkeypatch):
    sources = folder / "refssm"
    monkeypatch.setattr(soak, "SOURCES", sources)
    names = ("scan.py", "conformance/judge.py", "conformance/honest/scan.py", "command_line.py")
    left_out = [f"{place}/one.py" for place in LEFT_OUT]
    for name in (*names, *left_out):
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_text("a = 1", encoding="utf-8")
    before = soak.record()
    for name in left_out:
        (sources / name).write_text("a = 2", encoding="utf-8")
        assert soak.record() == before, name
    for name in names:
        (sources / name).write_text("a = 2", encoding="utf-8")
        assert soak.record() != before, name
        (sources / name).write_text("a = 1", encoding="utf-8")


@pytest.mark.long
def test_what_is_left_out_is_there_and_is_loaded_by_no_soak():
    code = "import sys, selftest.soak; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8"
    ).stdout
    for place in LEFT_OUT:
        assert (soak.SOURCES / place).is_dir()
        name = f"refssm.{place.replace('/', '.')}"
        assert not [m for m in loaded.split() if m == name or m.startswith(f"{name}.")]


def test_only_some_families_are_soaked_and_the_rows_of_others_stay(folder):
    stored.write(stored.SOAK, [OLD._replace(operator="cauchy_kernel", implementation="gone"), OLD])
    with pytest.raises(typer.Exit) as done:
        soak.main(seeds=3, cases=3, workers=1, only="cauchy,nothing")
    assert done.value.exit_code == 0
    rows = stored.read(stored.SOAK, stored.Soaked)
    assert rows == sorted(rows)
    assert rows[-1] == OLD
    found = {row.implementation: row.cases for row in rows if row.operator == "cauchy_kernel"}
    assert found["numba"] == "6"
    assert "gone" not in found
    assert {
        json.loads(line)["operator"]
        for line in soak.record().read_text(encoding="utf-8").splitlines()
    } == {"cauchy_kernel"}


@pytest.mark.long
def test_the_command_of_make_soak_runs_in_several_processes(folder):
    command = [
        sys.executable,
        "-m",
        "selftest.soak",
        "--seeds",
        "1",
        "--cases",
        "1",
    ]
    command += ["--workers", "2", "--only", "shift_kernel"]
    path = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", env=path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "1 pieces, 0 rejections of honest implementations\n"
    rows = stored.read(stored.SOAK, stored.Soaked)
    assert ("shift_kernel", "numba", "1") in [row[:3] for row in rows]
    mine = [row for row in rows if row.operator == "shift_kernel"]
    page = stored.SOAK_PAGE.read_text(encoding="utf-8")
    assert f"| shift_kernel | {len(mine)} | 1 |" in page


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "check", "seed"),
    [
        ("selective_step", "gradient[complex128]", 137),  # a loop over 256 equal terms
        ("resolvent_at_roots", "gradient[complex64]", 71),  # a member of the batch without errors
        ("resolvent_at_roots", "gradient[float64]", 135),
    ],
)
def test_pieces_that_rejected_a_right_program_reject_none(name, check, seed):
    assert soak.run_piece(name, f"{name}/{check}", seed, 5)["rejected"] == []
