"""Results of long runs that the repository keeps as CSV, and the page about the soak.

`docs/soak.csv` has one row for each honest implementation of the soak, `docs/naming_rate.csv` one
row for each run of `naming_rate`. `make tables` writes the pages from these files again.
"""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

SOAK, SOAK_PAGE = Path("docs/soak.csv"), Path("docs/soak.md")
NAMING = Path("docs/naming_rate.csv")
ADDED = ("seeds", "cases", "rejected")  # columns of the soak that are sums over runs


class Soaked(NamedTuple):
    """What the soak found for one honest implementation of one operator."""

    operator: str
    implementation: str
    seeds: str
    cases: str
    worst_ratio: str
    check: str  # the check that had the worst ratio
    rejected: str
    date: str  # the day on which the row was written
    commit: str  # the last commit on that day


class NamingRate(NamedTuple):
    """One run of `naming_rate`; empty where only a part of the run was recorded."""

    lost_bits: str
    bugs: str
    named_first: str
    no_name: str
    another_bug: str
    pattern: str
    honest_refused: str
    honest_named: str
    date: str
    commit: str


Row = TypeVar("Row", Soaked, NamingRate)


def lines(path: Path) -> Iterator[Any]:
    """The JSON documents of a file, one in each line; a line that was cut off is skipped."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        with suppress(json.JSONDecodeError):
            yield json.loads(line)


def today() -> tuple[str, str]:
    """The date (UTC) and the last commit, "" outside of a git clone."""
    command = ["git", "rev-parse", "--short=7", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, encoding="utf-8", check=False).stdout
    except FileNotFoundError:
        found = ""
    return datetime.now(UTC).date().isoformat(), found.strip()


def read(path: Path, kind: type[Row]) -> list[Row]:
    """The rows of a file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        return [kind(**row) for row in csv.DictReader(lines)]


def write(path: Path, rows: list[Soaked] | list[NamingRate]) -> None:
    """Write the rows under a line with the names of the columns."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(rows[0]._fields if rows else ())
        writer.writerows(rows)


def store(new: list[Soaked], soaked: Iterable[str], *, others: bool, further: bool = False) -> None:
    """Put new rows in the place of those of the operators `soaked`, and write the page.

    `others` says whether the rows of other operators stay, `further` whether seeds of the new rows
    come to those that stand.
    """
    stood, gone = read(SOAK, Soaked), {*soaked}
    kept = [row for row in stood if others and row.operator not in gone]
    if further:
        before = {row[:2]: row for row in stood}
        new = [together(before.pop(row[:2]), row) if row[:2] in before else row for row in new]
        kept += [row for row in before.values() if row.operator in gone]
    rows = sorted([*new, *kept], key=lambda row: row[:2])
    write(SOAK, rows)
    SOAK_PAGE.write_text(soak_page(rows), encoding="utf-8")


def together(one: Soaked, other: Soaked) -> Soaked:
    """The row of two runs with different seeds; the date and the commit are those of the second."""
    worst = max(one, other, key=lambda row: float(row.worst_ratio))
    sums = {k: str(sum(int(getattr(row, k)) for row in (one, other))) for k in ADDED}
    return worst._replace(**sums, date=other.date, commit=other.commit)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; each `|` inside a cell is escaped."""
    head, *cells = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    lines = [head, ["---"] * len(head), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def soak_page(rows: list[Soaked]) -> str:
    """The page about the soak: one row for each operator; rows are sorted."""
    by_operator = groupby(rows, key=attrgetter("operator"))
    return (
        f"{SOAK_TEXT}\n{table(SOAK_HEAD, (_soaked(name, [*own]) for name, own in by_operator))}\n"
    )


def _soaked(operator: str, rows: list[Soaked]) -> tuple[str, ...]:
    """What was found for all implementations of one operator."""
    worst = max(rows, key=lambda row: float(row.worst_ratio))
    seeds, cases = (_range(rows, column) for column in ("seeds", "cases"))
    of_worst = worst.worst_ratio, worst.implementation, worst.check
    rejected = str(sum(int(row.rejected) for row in rows))
    date, commit = max((row.date, row.commit) for row in rows)
    return operator, str(len(rows)), seeds, cases, *of_worst, rejected, date, commit


def _range(rows: list[Soaked], column: str) -> str:
    """The least and the largest number of a column."""
    numbers = sorted({int(getattr(row, column)) for row in rows})
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])


SOAK_HEAD = (
    "operator", "implementations", "seeds", "cases of each", "worst ratio", "of", "in", "rejected",
    "date", "after",
)  # fmt: skip
SOAK_TEXT = """\
# The soak

This page is written by `make soak`, and by `make tables` from `docs/soak.csv`. Do not edit it.

The soak tests the judge with right programs: `tests/honest/` has implementations that
compute the same operators in other ways, and the judge must reject none of them. `make soak` draws
1000 seeds for each operator. A seed runs one check of the operator on 5 cases (4 for a law); the
next seed runs the next check. An interrupted soak continues where it stopped.
`make soak ONLY=dplr,nplr` soaks some families and keeps the rows of the others.

| column | meaning |
|---|---|
| seeds | how many seeds an implementation was judged with, the fewest and the most |
| cases of each | on how many cases an implementation was judged, the fewest and the most |
| worst ratio | the largest \\|error\\| / (u·K0); 16 is allowed, or more where the implementation \
declares a budget |
| of, in | the implementation and the check that had the worst ratio |
| rejected | how often the judge rejected one of them: must be 0 |
| date, after | the day on which the rows were written, and the last commit on that day |

[soak.csv](soak.csv) has a row for each implementation.

A ratio above 16 without a declared budget is grade B: the error is within K1. The chunked forms of
SSD reach such ratios, because they are measured by the roundings of the recurrence.

The rows of 130 operators were made with Python 3.11.7, NumPy 2.4.6, SciPy 1.17.1, PyTorch 2.15.0
and JAX 0.10.2, with the judge's own cases: 100 seeds, 5 cases each, 13,000 pieces, all at commit
0b617be4. Three cases of PyTorch's transform of 254 points were rejected, rightly
([findings](findings.md)), and no other; the honest program has powers of two since. The 122
recurrences with gates and their stages (linear attention, Mamba-2 and 3, RWKV, mLSTM, RG-LRU,
minGRU, LinOSS) had 10 seeds of 5 cases each at commit a29a66d5, without long and wide ones (they
begin with the first seed since), 1,220 pieces, with NumPy, SciPy and Numba; PyTorch and JAX were
not installed. Two were rejected:
minGRU's matrix program lost NaN where a product of decays underflows, and does not any more;
mLSTM's program without units is right, and `split` compared states in its units with bounds in
those of the reference; now it has the reference's. 1000 seeds of one case each, which 66 of them
had before, drew the simplest case every time. The 66 of linear attention, Mamba-2 and their stages
had 30 seeds more at commit 3b73d0b, of one case and a long or wide one beside: 1,980 pieces, no
rejection. Seeds 30 to 250 followed, with PyTorch and without JAX: 14,520 pieces, at commits up to
7300c92. Eight were rejected, of four causes, which are mended: PyTorch's softplus is linear above
20, which is too much in double precision; a PyTorch program took longer chunks than asked, so NaN
went farther; one attention over 257 steps lost more than 128 steps may; and the judge had no room
for the roundings of two sums where the first step takes away all of the state.

Seeds 250 to 1000 of the 66 followed, too: 49,500 pieces, at commits c760f2b and ec48df7. Three were
rejected, all gradients of `kimi_delta_rule_chunked_stateful` by S0 with one key, of right kernels.
The judge's program that keeps sums of 128 steps began them at the end of the sequence, so that with
129 steps the first one stood alone; kernels begin at the first step. And of a sum that was large
and is small it counted a rounding of the small one. Both are mended (c405120). After that this
operator had its 750 seeds again, and the twelve delta rules by chunks seeds 1000 to 1100: no
rejection. The chunk of 64 that was refused as a plain rule at seed 261 is right in norm since
ec48df7.

Before that, 96 operators had 1000 seeds of cases that Hypothesis drew. These found fourteen
rejections, of five causes in the judge and four in honest programs. The judge's own cases found one
more, and the seeds of the 16 seven, of five causes. All are settled (`docs/decisions.md`, 27 to 29
November).
"""
