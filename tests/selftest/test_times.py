"""The table of the judge's times."""

import pytest
from typer import Exit

from refssm.hankel import HANKEL_MATRIX
from refssm.scan import LINEAR_SCAN
from selftest import times, waiting
from selftest.times import Timed

QUICK, SLOW = Timed("linear_step", 3.04, 4.0), Timed("linear_scan", 10.06, 19.0)


def test_the_slowest_operator_comes_first_and_is_marked():
    first, second, last = times.lines([QUICK, SLOW])
    assert " ".join(first.split()) == "linear_scan 10.1 s 19.0 s of processors above 10 s"
    assert " ".join(second.split()) == "linear_step 3.0 s 4.0 s of processors"
    assert last == "2 operators, 1 above 10 s, 13 s in all"


def test_the_page_has_the_times_and_the_remark():
    page = times.page([QUICK._replace(after="abc1234"), SLOW._replace(after="def")], 2, "shared")
    assert "| linear_scan | 10.1 (!) | 19.0 | def |\n| linear_step | 3.0 | 4.0 | abc1234 |" in page
    assert "2 processes" in page
    assert "; shared." in page


def test_rows_of_operators_that_are_not_measured_again_stay(monkeypatch, tmp_path):
    monkeypatch.setattr(times, "PAGE", tmp_path / "page.md")
    old = [QUICK._replace(after="abc1234"), Timed("gone", 1.0, 1.0, "abc1234"), SLOW]
    times.PAGE.write_text(times.page(old, 2, ""), encoding="utf-8")
    monkeypatch.setattr(times, "timed", lambda op, *_: Timed(op.name, 5.0, 6.0, "fed4321"))
    with pytest.raises(Exit):
        times.main(only="linear_scan", record=True)
    first, second = times.read(times.PAGE.read_text(encoding="utf-8"))
    assert first == Timed("linear_scan", 5.0, 6.0, "fed4321")
    assert second == Timed("linear_step", 3.0, 4.0, "abc1234")


def test_one_slow_operator_makes_the_exit_code_one(monkeypatch, capsys):
    for row, code in ((QUICK, 0), (SLOW, 1)):
        monkeypatch.setattr(times, "timed", lambda op, *_, row=row: row._replace(operator=op.name))
        with pytest.raises(Exit) as ended:
            times.main(only="linear_scan")
        assert ended.value.exit_code == code
        assert "linear_scan" in capsys.readouterr().out


@pytest.mark.long
def test_an_operator_is_judged_from_nothing_kept():
    row = times.timed(HANKEL_MATRIX, 1, "quick")
    assert row.operator == "hankel_matrix"
    assert 0.1 < row.wall < 60


@pytest.mark.long
def test_a_reference_that_is_not_accepted_is_an_error(monkeypatch, tmp_path):
    (tmp_path / "wrong_scan.py").write_text(
        "def linear_scan(a, b):\n    return b + 1\n", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:.")
    monkeypatch.setattr(LINEAR_SCAN.reference, "__module__", "wrong_scan")
    with pytest.raises(RuntimeError, match="not accepted"):
        times.timed(LINEAR_SCAN, 1, "quick")


def test_the_part_on_programs_of_others_stays_and_is_replaced(monkeypatch, tmp_path):
    monkeypatch.setattr(times, "PAGE", tmp_path / "page.md")
    before = times.page([QUICK], 2, "")
    one, two = (waiting.name(*subject) for subject in waiting.SUBJECTS[:2])
    gone = "| gone | 1, 1 | 1, 1 | 1, 1 | 1, 1 | abc |\n"
    with_part = waiting.recorded(before, [(one, "1, 2", "3, 4", "5, 6", "7, 8")], "") + gone
    times.PAGE.write_text(with_part, encoding="utf-8")
    monkeypatch.setattr(times, "timed", lambda op, *_: Timed(op.name, 5.0, 6.0, "fed4321"))
    with pytest.raises(Exit):
        times.main(only="linear_step", record=True)
    after = times.PAGE.read_text(encoding="utf-8")
    assert f"| {one} | 1, 2 | 3, 4 | 5, 6 | 7, 8 | " in after
    assert times.read(after) == [Timed("linear_step", 5.0, 6.0, "fed4321")]
    again = waiting.recorded(after, [(two, "1, 1", "1, 1", "1, 1", "1, 1")], "")
    assert [row[:2] for row in waiting.read(again)] == [(one, "1, 2"), (two, "1, 1")]
    newer = waiting.recorded(again, [(one, "2, 2", "2, 2", "2, 2", "2, 2")], "")
    assert [row[:2] for row in waiting.read(newer)] == [(one, "2, 2"), (two, "1, 1")]
    assert again.count(times.WAITING) == 1
    assert times.read(again) == times.read(after)


@pytest.mark.long
def test_a_user_waits_for_the_first_sentence_and_for_the_last(tmp_path):
    cells = waiting.row("scipy", "causal_convolution_direct", "a direct convolution", tmp_path)
    assert len(cells) == 5
    assert all(0 < float(first) <= float(last) < 300 for first, last in _pairs(cells[1:]))


def _pairs(cells):
    return [cell.split(", ") for cell in cells]
