"""The same right and wrong kernels through what people use now, and through the judge.

    PYTHONPATH=tests python -m selftest.compare --only linear_scan
    PYTHONPATH=tests python -m selftest.compare --record  # all; writes docs/compare.md

Each program is judged in one type of single precision. `docs/compare.csv` has one row for each
program; with `--only`, the rows of the other operators stay, with `--checks`, the cells of the
other checks, with their seconds: so a new check costs no run of the judge. The checks of others are
in `comparing/published.py`, the programs in `comparing/programs.py`.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer

from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.judging.expected import remembering
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from selftest import soak, stored
from selftest.comparing import page
from selftest.comparing.programs import (
    APART,
    NAMES,
    TASK,
    Declined,
    Program,
    of_tasks,
    others,
    programs_of,
)
from selftest.comparing.published import PUBLISHED
from selftest.comparing.rows import PATH, Row, read, write


@dataclass(frozen=True)
class Judged:
    """refssm's own judge, with one profile and one type."""

    name: str
    profile: str
    source: str
    told: str
    own: tuple[str, ...] = ()

    def run(self, program: Program) -> tuple[str, float]:
        """The check that fails and its message, or "", and the seconds."""
        how = Settings(
            profile=self.profile,
            types=(program.dtype,),
            shrink=False,
            hints=False,
            folder=None,
            stop_at_failure=True,
        )
        started = time.process_time()
        results = results_of(Session(InProcess([program.found]), "here", how))
        failed = next((r for r in results if r.failed), None)
        spent = time.process_time() - started
        return (f"{failed.check}: {failed.message}" if failed else ""), spent


JUDGES = (
    Judged(
        "refssm quick",
        "quick",
        "`refssm verify --profile quick --dtype …`",
        "values, laws, memory and repetition; no gradients",
    ),
    Judged(
        "refssm default",
        "default",
        "`refssm verify --dtype …`",
        "the same with gradients and more laws",
    ),
)
TIMED = 40  # the judge is timed on one of so many programs of an operator, from nothing kept
METHODS = (*PUBLISHED, *JUDGES)
BESIDE = {APART: others, TASK: of_tasks}  # not planted for the judge
Key = tuple[str, str, str]  # operator, program and type


def rows_of(programs: list[Program], kept: Mapping[Key, Row] | None = None) -> Iterator[Row]:
    """The verdict of every method on every program; what a kept row has is not run again."""
    date, commit = stored.today()
    memory: dict = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for k, program in enumerate(programs):
            told = (program.op.name, program.name, program.dtype, program.group, program.what)
            old = (kept or {}).get(told[:3])
            cells, reasons = {}, []
            for method in METHODS:
                if old and old.cells.get(method.name):
                    cells[method.name] = old.cells[method.name]
                    why = page.reason(old, method)
                else:
                    context = nothing_kept() if k % TIMED == 0 else remembering(memory)
                    with context:
                        word, why, seconds = verdict(method, program)
                    timed = seconds and (method in PUBLISHED or k % TIMED == 0)
                    cells[method.name] = f"{word} {seconds:.2g}" if timed else word
                reasons += [f"{method.name}: {why}"] * bool(why and program.right)
            yield Row(*told, cells, " | ".join(reasons), date, commit)


def cells_but(rows: list[Row], checks: str) -> dict[Key, Row]:
    """The rows by program, without the cells of these checks."""
    again = set(checks.split(","))
    if unknown := again - {m.name for m in METHODS}:
        raise typer.BadParameter(f"no check is called {', '.join(sorted(unknown))}")
    left = {
        row[:3]: {name: cell for name, cell in row.cells.items() if name not in again}
        for row in rows
    }
    return {row[:3]: row._replace(cells=left[row[:3]]) for row in rows}


@contextmanager
def nothing_kept() -> Iterator[None]:
    """Context in which the judge computes all expected values, as at a user's first run."""
    before = os.environ.get("REFSSM_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="refssm-compare-") as folder:
        os.environ["REFSSM_CACHE_DIR"] = folder
        try:
            yield
        finally:
            os.environ.pop("REFSSM_CACHE_DIR")
            os.environ |= {"REFSSM_CACHE_DIR": before} if before else {}


def verdict(method: page.Method, program: Program) -> tuple[str, str, float]:
    """The verdict, what differs, and the seconds."""
    try:
        why, seconds = method.run(program)
    except Declined:
        return "declined", "", 0.0
    words = ("accepted", "refused") if program.right else ("missed", "caught")
    return words[bool(why)], why, seconds


def keep(new: list[Row]) -> list[Row]:
    """Put new rows in the place of those of the same operator and kind, and write the page."""
    gone = {kind(row) for row in new}
    rows = [*(row for row in read(PATH) if kind(row) not in gone), *new]
    rows.sort(key=lambda row: [*NAMES, *BESIDE].index(kind(row)))
    write(PATH, rows)
    page.PAGE.write_text(page.page(rows, METHODS), encoding="utf-8")
    return rows


def kind(row: Row) -> str:
    """The operator of a program, or its group if it was not planted for the judge."""
    return row.group if row.group in BESIDE else row.operator


def main(
    only: Annotated[
        str, typer.Option(help="Families or operators, separated by commas; or apart, or task.")
    ] = "",
    checks: Annotated[
        str, typer.Option(help="Checks to run again, separated by commas; others keep their cells.")
    ] = "",
    record: Annotated[bool, typer.Option(help="Write docs/compare.csv and the page.")] = False,
) -> None:
    """Print what each method catches and refuses."""
    kept = cells_but(read(PATH), checks) if checks else None
    names = [*NAMES, *BESIDE] if not only else [only] if only in BESIDE else []
    names = names or [name for name in NAMES if soak.among(name, only)]
    came: list[Row] = []
    with nothing_kept():
        for name in names:
            started = time.perf_counter()
            new = [*rows_of(BESIDE[name]() if name in BESIDE else programs_of(name), kept)]
            came += new
            typer.echo(f"{name}: {time.perf_counter() - started:.0f} s", err=True)
            if record:  # an interrupted run keeps what it ended
                keep(new)
    if only in BESIDE:
        typer.echo(page.beside(came, METHODS, only))
        return
    typer.echo(page.totals(came, METHODS))
    for line in page.refusals(came, METHODS):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
