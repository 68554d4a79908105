"""Record the verdicts on planted bugs and honest implementations: changes must not alter them.

    PYTHONPATH=tests python -m selftest.verdicts write tests/verdicts
    PYTHONPATH=tests python -m selftest.verdicts compare tests/verdicts

The rule: a planted bug is `wrong`, grade F, by the check that catches it, and an honest
implementation passes every check of its operator. `planted.csv` and `honest.csv` have the verdicts
that differ from the rule; `planted_counts.csv` and `honest_counts.csv` say for each operator how
many bugs, implementations and verdicts there are, so that a lost one is seen.

`write --only` replaces the rows of the operators it names. `write --figures` writes every verdict,
with ratios and messages, which depend on the processor's kernels: for a comparison on one machine.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import track

from refssm.catalog import OPERATORS
from refssm.conformance.calling.finding import operator_named
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.checks.checks import PROFILES, checks_of, default_types
from refssm.conformance.diagnosis.suspects import bugs_of_operator
from refssm.conformance.judging.expected import remembering
from refssm.conformance.planted import PlantedBug
from refssm.conformance.running.session import results_of
from refssm.conformance.running.settings import Session, Settings
from selftest import soak

CASES = 4  # cases per check of the honest implementations
COLUMNS = {
    "planted": ("operator", "bug", "what", "check", "verdict", "grade"),
    "honest": ("operator", "implementation", "check", "verdict"),
}
RULE = {"planted": {"verdict": "wrong", "grade": "F"}, "honest": {"verdict": "pass"}}
COUNTED = {  # for each operator the number of different entries in these columns
    "planted": {"bugs": ("bug",)},
    "honest": {"implementations": ("implementation",), "verdicts": ("implementation", "check")},
}
FIGURES = {"planted": ("ratio", "message"), "honest": ("ratio",)}
Row = dict[str, str]

app = typer.Typer(add_completion=False, help=__doc__)


def planted_rows(name: str, seed: int) -> list[Row]:
    """The verdict on each planted bug of an operator, by the check that catches it."""
    op = operator_named(name)
    return [_planted_row(bug, seed) for bug in bugs_of_operator(op.name, op.family)]


def _planted_row(bug: PlantedBug, seed: int) -> Row:
    check, _, dtype = bug.caught_by.rstrip("]").partition("[")
    how = {"only_checks": (check,), "types": (dtype,), "shrink": False, "hints": False}
    settings = Settings(**how, seed=seed, folder=None)
    results = list(results_of(Session(InProcess([bug.found()]), "here", settings)))
    told = next((r for r in results if r.failed), results[0])
    row = {"operator": bug.op, "bug": bug.name, "what": bug.what, "check": bug.caught_by}
    row |= {"verdict": told.verdict, "grade": told.grade}
    return row | {"ratio": f"{told.ratio!r}", "message": told.message}


def honest_rows(name: str, seed: int) -> list[Row]:
    """The verdict of each check of an operator on each honest implementation."""
    op, profile = operator_named(name), PROFILES["default"]
    honest = [h for h in soak.here(name) if not h.needs]  # without libraries that may be missing
    rows = []
    for check in checks_of(op, profile, default_types(op, profile), vjp=op.differentiable):
        seen = soak.judged(check, honest, soak.usual(check, min(CASES, check.count), seed))
        refused = {text.partition(":")[0] for text in seen.rejected}
        for implementation, ratio in seen.worst.items():
            judged = "pass" if implementation in seen.passed else "nothing judged"
            verdict = "rejected" if implementation in refused else judged
            row = {"operator": name, "implementation": implementation}
            row |= {"check": check.id.partition("/")[2], "verdict": verdict}
            rows.append(row | {"ratio": f"{ratio!r}"})
    return rows


ROWS = {"planted": planted_rows, "honest": honest_rows}


def of_operator(name: str, kinds: tuple[str, ...], seed: int = 0) -> dict[str, list[Row]]:
    """The rows of one operator, by file."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), remembering():
        warnings.simplefilter("ignore")
        return {kind: ROWS[kind](name, seed) for kind in kinds}


def all_rows(
    only: str, workers: int, kinds: tuple[str, ...], seed: int = 0
) -> dict[str, list[Row]]:
    """The rows of all operators, sorted, by file."""
    names = [op.name for op in OPERATORS if soak.among(op.name, only)]
    running = soak.as_they_come(of_operator, [(name, kinds, seed) for name in names], workers)
    came = [rows for _, rows in track(running, total=len(names), disable=not sys.stderr.isatty())]
    return {kind: _sorted(row for rows in came for row in rows[kind]) for kind in kinds}


def _sorted(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: [*row.values()][:4])


def read(path: Path) -> list[Row]:
    """The rows of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, shown: Iterable[str], rows: list[Row]) -> None:
    """Write these columns of the rows."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*shown], extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def counts(kind: str, rows: list[Row]) -> list[Row]:
    """How many bugs, or implementations and verdicts, each operator has; rows are sorted."""
    by_operator = groupby(rows, key=itemgetter("operator"))
    return [{"operator": name, **_numbers(kind, [*own])} for name, own in by_operator]


def _numbers(kind: str, rows: list[Row]) -> Row:
    """The counts of one operator."""
    different = {n: {tuple(row[c] for c in of) for row in rows} for n, of in COUNTED[kind].items()}
    return {name: str(len(found)) for name, found in different.items()}


def exceptions(kind: str, rows: list[Row]) -> list[Row]:
    """The rows whose verdict differs from the rule."""
    return [row for row in rows if row | RULE[kind] != row]


def by_rule(kind: str, recorded: list[Row], now: list[Row]) -> list[Row]:
    """The verdicts that are expected: the recorded exceptions, and the rule for all other rows."""

    def key(row: Row) -> tuple[str, ...]:
        return tuple(row[c] for c in COLUMNS[kind] if c not in RULE[kind])

    known = {key(row) for row in recorded}
    return recorded + [row | RULE[kind] for row in now if key(row) not in known]


def record(folder: Path, kind: str, rows: list[Row], only: str = "") -> int:
    """Write the exceptions and the counts; the number of exceptions.

    Rows of operators that `only` does not name stay as they are.
    """
    found = exceptions(kind, rows)
    files = {f"{kind}.csv": (COLUMNS[kind], found)}
    files[f"{kind}_counts.csv"] = (["operator", *COUNTED[kind]], counts(kind, rows))
    for name, (shown, own) in files.items():
        kept = [row for row in _read(folder / name) if not soak.among(row["operator"], only)]
        _write(folder / name, shown, _sorted(kept + own))
    return len(found)


def _read(path: Path) -> list[Row]:
    """The rows of a file; none if there is none."""
    return read(path) if path.exists() else []


def changes(folder: Path, kind: str, rows: list[Row], only: str = "") -> list[str]:
    """Lines about verdicts and counts of a folder that differ from those now."""
    before, counted = folder / f"{kind}.csv", folder / f"{kind}_counts.csv"
    recorded = [row for row in read(before) if soak.among(row["operator"], only)]
    if not counted.exists():  # the folder has every verdict, by `write --figures`
        columns = (*COLUMNS[kind], *FIGURES[kind])
        return differences(recorded, rows, [c for c in columns if recorded and c in recorded[0]])
    lines = differences(by_rule(kind, recorded, rows), rows, COLUMNS[kind])
    old = [_in_words(row) for row in read(counted) if soak.among(row["operator"], only)]
    new = [_in_words(row) for row in counts(kind, rows)]
    return lines + differences(old, new, ["operator", *COUNTED[kind]])


def _in_words(row: Row) -> Row:
    """Counts with their names: "45 bugs"."""
    return {name: text if name == "operator" else f"{text} {name}" for name, text in row.items()}


def differences(before: list[Row], now: list[Row], compared: Sequence[str]) -> list[str]:
    """Rows in only one of two lists: `-` for those before, `+` for those now."""
    old, new = (Counter(tuple(row[c] for c in compared) for row in rows) for rows in (before, now))
    gone = [f"- {', '.join(row)}" for row in sorted((old - new).elements())]
    return gone + [f"+ {', '.join(row)}" for row in sorted((new - old).elements())]


Only = Annotated[str, typer.Option(help="Families or operators, separated by commas.")]
Workers = Annotated[int, typer.Option(help="Processes.")]
Seed = Annotated[int, typer.Option(help="Of the cases; that of the written verdicts is 0.")]
Of = Annotated[str, typer.Option(help="planted or honest; without it both.")]


def chosen(of: str) -> tuple[str, ...]:
    """The files to write or to compare."""
    if of and of not in ROWS:
        raise typer.BadParameter(f"unknown file {of!r}; wanted one of {', '.join(ROWS)}")
    return (of,) if of else (*ROWS,)


@app.command()
def write(
    folder: Path,
    only: Only = "",
    of: Of = "",
    workers: Workers = 2,
    seed: Seed = 0,
    figures: Annotated[
        bool, typer.Option(help="Write every verdict, with ratios and messages.")
    ] = False,
) -> None:
    """Judge all planted bugs and honest implementations, and write the verdicts."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, rows in all_rows(only, workers, chosen(of), seed).items():
        if figures:
            _write(folder / f"{kind}.csv", [*COLUMNS[kind], *FIGURES[kind]], rows)
            (folder / f"{kind}_counts.csv").unlink(missing_ok=True)
            typer.echo(f"{kind}: {len(rows)} verdicts in {folder}")
        else:
            found = record(folder, kind, rows, only)
            typer.echo(f"{kind}: {len(rows)} verdicts, {found} of them exceptions, in {folder}")


@app.command()
def compare(
    folder: Path, only: Only = "", of: Of = "", workers: Workers = 2, seed: Seed = 0
) -> None:
    """Judge again and compare with the written verdicts; exit code 1 if any verdict differs."""
    differ = False
    for kind, rows in all_rows(only, workers, chosen(of), seed).items():
        lines = changes(folder, kind, rows, only)
        for line in lines:
            typer.echo(line)
        typer.echo(f"{kind}: {len(rows)} verdicts, {len(lines)} lines of difference")
        differ |= bool(lines)
    raise typer.Exit(int(differ))


if __name__ == "__main__":  # worker processes need the module's functions, not __main__'s
    from selftest import verdicts

    verdicts.app()
