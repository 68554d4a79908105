"""Results of long runs, kept as CSV: what is written is read again, and a run becomes a row."""

import re

from selftest import naming_rate, stored

ROW = stored.Soaked(
    "ssd_step", "numba", "3", "5", "0.9", "nan[float32]", "0", "2026-11-22", "b01ecc3"
)


def test_rows_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "rows.csv"
    assert stored.read(path, stored.Soaked) == []
    rows = [ROW, ROW._replace(check='a, "b"', commit="")]
    stored.write(path, rows)
    assert stored.read(path, stored.Soaked) == rows


def test_new_rows_replace_those_of_their_operators_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    other = ROW._replace(operator="linear_scan")
    stored.write(stored.SOAK, [ROW, other])
    new = ROW._replace(cases="9")
    stored.store([new], ["ssd_step"], others=True)
    assert stored.read(stored.SOAK, stored.Soaked) == [other, new]
    assert "| linear_scan | 1 | 3 | 5 | 0.9 | numba |" in stored.SOAK_PAGE.read_text(
        encoding="utf-8"
    )
    stored.store([new], ["ssd_step"], others=False)
    assert stored.read(stored.SOAK, stored.Soaked) == [new]


def test_further_seeds_add_up_and_the_worst_ratio_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    other, loop = ROW._replace(operator="linear_scan"), ROW._replace(implementation="loop")
    stored.write(stored.SOAK, [ROW, other, loop])
    new = ROW._replace(seeds="7", cases="20", worst_ratio="0.5", rejected="1", commit="c6891121")
    tree = ROW._replace(implementation="tree")
    stored.store([new, tree], ["ssd_step"], others=True, further=True)
    both = ROW._replace(seeds="10", cases="25", rejected="1", commit="c6891121")
    assert stored.read(stored.SOAK, stored.Soaked) == [other, loop, both, tree]


def test_the_page_has_a_row_for_each_operator_with_the_worst_of_its_implementations():
    loop = ROW._replace(implementation="loop", cases="12", worst_ratio="2.5", check="value")
    other = ROW._replace(operator="transfer", implementation="qr", rejected="2")
    tree = other._replace(implementation="tree", worst_ratio="0.25", rejected="1")
    lines = stored.soak_page([loop, ROW, other, tree]).splitlines()
    assert (
        lines[-2]
        == "| ssd_step | 2 | 3 | 5 to 12 | 2.5 | loop | value | 0 | 2026-11-22 | b01ecc3 |"
    )
    assert lines[-1].startswith("| transfer | 2 | 3 | 5 | 0.9 | qr | nan[float32] | 3 | ")


def test_a_row_has_the_date_and_outside_of_a_clone_no_commit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    date, commit = stored.today()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)
    assert commit == ""


def test_a_run_of_the_naming_rate_becomes_a_row():
    def named(caught=True, first=False, told="", some=False):
        return naming_rate.Named("bug", "value[float32]", "what", caught, first, told, some)

    bugs = [
        named(first=True, told="what", some=True),
        named(),
        named(told="another bug", some=True),
        named(told="a constant factor"),
        named(caught=False),
    ]
    row = naming_rate.rate(6, bugs, [named(), named(told="what", some=True)])
    assert row[:-2] == ("6", "4", "1", "1", "1", "1", "2", "1")
