"""`docs/compare.csv`: one row for each program, with a cell for each method."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

PATH = Path("docs/compare.csv")


class Row(NamedTuple):
    """The verdicts on one program."""

    operator: str
    program: str
    type: str
    group: str
    what: str
    cells: dict[str, str]  # by method: a verdict, and seconds if timed: "caught 0.02"
    reasons: str  # why right programs were refused
    date: str
    commit: str

    def verdict(self, method: str) -> str:
        """The verdict of one method."""
        return self.cells.get(method, "").partition(" ")[0]

    def seconds(self, method: str) -> float:
        """The seconds of one method; NaN if it was not timed."""
        return float(self.cells.get(method, "").partition(" ")[2] or "nan")


FIRST, LAST = Row._fields[:5], Row._fields[6:]


def read(path: Path) -> list[Row]:
    """The rows of a file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        return [_row(found) for found in csv.DictReader(lines)]


def _row(found: dict[str, str]) -> Row:
    told = {name: found.pop(name) for name in (*FIRST, *LAST)}
    return Row(**told, cells=found)


def write(path: Path, rows: list[Row]) -> None:
    """Write the rows under a line with the names of the columns; a new check may have no cell."""
    checks = [*max((row.cells for row in rows), key=len)]
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow((*FIRST, *checks, *LAST))
        writer.writerows(
            (*row[:5], *(row.cells.get(check, "") for check in checks), *row[6:]) for row in rows
        )
