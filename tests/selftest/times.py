"""How long the judge needs for each operator, from nothing kept: value and gradient, all types.

    PYTHONPATH=tests python -m selftest.times --only scan,ssd
    PYTHONPATH=tests python -m selftest.times --record  # writes docs/judge_times.md; with --only
                                                        # the rows of others stay

For each operator a fresh `refssm verify` judges refssm's own reference, with two processes and an
empty cache folder. So each time includes the start of Python and the imports; nothing is compiled.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS
from selftest import soak, stored

LIMIT = 10.0  # seconds of wall time
PAGE = Path("docs/judge_times.md")
WAITING = "## Programs of others"  # the part of the page that `selftest.waiting` writes


class Timed(NamedTuple):
    """The time of one operator, and the processor time of all its processes."""

    operator: str
    wall: float
    processor: float
    after: str = ""  # the last commit before the measurement

    @property
    def slow(self) -> bool:
        """True above the limit."""
        return self.wall > LIMIT


def timed(op: Operator, workers: int, profile: str) -> Timed:
    """Judge the operator's reference once; RuntimeError if the judge does not accept it."""
    command = [
        *(sys.executable, "-m", "refssm", "verify", f"{op.reference.__module__}::{op.name}"),
        *("--check", "value", "--check", "gradient", "--profile", profile),
        *("--workers", str(workers), "--no-config"),
    ]
    with tempfile.TemporaryDirectory(prefix="refssm-times-") as folder:
        environment = os.environ | {"REFSSM_CACHE_DIR": folder}
        # set, it would compile all of refssm again in each process; users start from bytecode
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        before, started = _processor(), time.perf_counter()
        done = subprocess.run(
            command, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        wall, processor = time.perf_counter() - started, _processor() - before
    if done.returncode:
        raise RuntimeError(f"{op}: refssm's reference is not accepted\n{done.stdout}{done.stderr}")
    return Timed(op.name, wall, processor)


def _processor() -> float:
    """Seconds of processor time of all ended child processes; 0 on Windows."""
    times = os.times()
    return times.children_user + times.children_system


def lines(rows: list[Timed]) -> Iterator[str]:
    """The rows as text, the slowest first, and their sum."""
    for row in sorted(rows, key=lambda row: -row.wall):
        mark = f"   above {LIMIT:.0f} s" if row.slow else ""
        yield f"{row.operator:36}{row.wall:6.1f} s{row.processor:8.1f} s of processors{mark}"
    slow, total = sum(row.slow for row in rows), sum(row.wall for row in rows)
    yield f"{len(rows)} operators, {slow} above {LIMIT:.0f} s, {total:.0f} s in all"


def read(text: str) -> list[Timed]:
    """The rows of a page."""
    rows = re.findall(
        r"^\| (\w+) \| ([\d.]+)(?: \(!\))? \| ([\d.]+) \| (\w*) \|$", text, re.MULTILINE
    )
    return [Timed(name, float(wall), float(own), after) for name, wall, own, after in rows]


def page(rows: list[Timed], workers: int, note: str) -> str:
    """The page with the times of all operators."""
    date, commit = stored.today()
    cells = [
        (
            row.operator,
            f"{row.wall:.1f}{' (!)' if row.slow else ''}",
            f"{row.processor:.1f}",
            row.after or commit,
        )
        for row in sorted(rows, key=lambda row: -row.wall)
    ]
    table = stored.table(("operator", "seconds", "seconds of processors", "after"), cells)
    told = f"Last rows: {date}, {workers} processes, {os.cpu_count()} cores"
    told += f", Python {platform.python_version()}{f'; {note}' if note else ''}"
    return f"{TEXT}\n{told}.\n\n{table}\n"


def main(
    only: Annotated[str, typer.Option(help="Families or operators, separated by commas.")] = "",
    workers: Annotated[int, typer.Option(help="Processes of each run of the judge.")] = 2,
    profile: Annotated[str, typer.Option(help="The judge's profile.")] = "default",
    record: Annotated[bool, typer.Option(help="Write the page; rows of others stay.")] = False,
    note: Annotated[str, typer.Option(help="A remark on the machine, for the page.")] = "",
) -> None:
    """Print how long each operator needs; exit code 1 if one needs more than the limit."""
    rows = []
    for op in OPERATORS:
        if soak.among(op.name, only):
            rows.append(timed(op, workers, profile))
            typer.echo(f"{op}: {rows[-1].wall:.1f} s", err=True)
    for line in lines(rows):
        typer.echo(line)
    if record:
        text = page([*rows, *_others(rows)], workers, note) + _waiting()
        PAGE.write_text(text, encoding="utf-8")
    raise typer.Exit(int(any(row.slow for row in rows)))


def _others(rows: list[Timed]) -> list[Timed]:
    """The rows of the page for operators that were not measured again, if they still exist."""
    known = {op.name for op in OPERATORS} - {row.operator for row in rows}
    kept = read(PAGE.read_text(encoding="utf-8")) if PAGE.is_file() else []
    return [row for row in kept if row.operator in known]


def _waiting() -> str:
    """The part of the page on programs of others, as it stands."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    _, heading, rest = text.partition(WAITING)
    return f"\n{heading}{rest}" if heading else ""


TEXT = """\
# How long the judge needs

This page is written by `PYTHONPATH=tests python -m selftest.times --record`. Do not edit it.

For each operator: `refssm verify` on refssm's own reference in the default profile, checks `value`
and `gradient`, all types, with an empty cache folder. The time includes the start of Python and the
imports; nothing is compiled. (!) marks what needs more than 10 seconds. The last column is the last
commit before the measurement.
"""


if __name__ == "__main__":
    typer.run(main)
