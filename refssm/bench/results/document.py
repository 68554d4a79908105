"""A run as one JSON file; `bench.schema.json` describes it. A file is whole or absent.

Two runs are compared row by row: faster, slower, same or undecided.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from refssm.bench.measuring.timing import Interval, Rates
from refssm.bench.results.rows import Row, Work, WorkRows
from refssm.conformance.calling.finding import short
from refssm.conformance.file_errors import DOCUMENT, UNREADABLE, contents, write_whole
from refssm.conformance.record_lines import record_lines
from refssm.conformance.usage_error import UsageError

SCHEMA = 1
LISTS = ("machine", "works", "rows", "growth")  # each item on a line of its own


@dataclass(frozen=True)
class Document:
    """A whole run."""

    started: str  # UTC
    command: str
    machine: Mapping
    rates: Rates
    groups: list[WorkRows]
    growth: list[Mapping] = field(default_factory=list)  # see `growth.py`


def text(run: Document) -> str:
    """The run as JSON: what was measured, and what follows from it for other readers."""
    document = {
        "schema": SCHEMA,
        "started": run.started,
        "command": run.command,
        "machine": dict(run.machine),
        "rates": asdict(run.rates),
        "works": [_work(group) for group in run.groups],
        "growth": list(run.growth),
    }
    return record_lines(_finite(document), LISTS)


def _work(group: WorkRows) -> dict:
    rows = [asdict(row) | _derived(group, row) for row in group.rows]
    return {**asdict(group.work), "size": dict(group.work.size), "rows": rows}


def _derived(group: WorkRows, row: Row) -> dict:
    if not row.timed:
        return {"median": None, "quartiles": None, "times_mirror": None}
    came = group.times_base(row)
    return {
        "median": asdict(row.median),
        "quartiles": list(row.quartiles),
        "times_mirror": asdict(came) if came else None,
    }


def _finite(value):
    """The same with None for what JSON has no number for."""
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read(path: Path) -> Document:
    """The run in a file; UsageError if it has none."""
    try:
        found = json.loads(contents(path, DOCUMENT).decode("utf-8"))
    except UNREADABLE as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: not a readable run of refssm bench: {reason}") from None
    given = found.get("schema") if isinstance(found, dict) else None
    if isinstance(given, int) and given != SCHEMA:
        raise UsageError(f"{path}: schema {given}; this version reads schema {SCHEMA}")
    wrong = best_match(Draft202012Validator(schema()).iter_errors(found))
    if wrong is not None:
        place = "/".join(map(str, wrong.absolute_path)) or "the file"
        raise UsageError(f"{path}: not a run of refssm bench: {place}: {short(wrong.message)}")
    groups = [WorkRows(_made(Work, w), [_row(r) for r in w["rows"]]) for w in found["works"]]
    rates = _rates(found["rates"])
    return Document(
        found["started"], found["command"], found["machine"], rates, groups, found["growth"]
    )


@cache
def schema() -> dict:
    """The schema of the file."""
    place = files("refssm.bench.results").joinpath("bench.schema.json")
    return json.loads(place.read_text(encoding="utf-8"))


def _rates(record: dict) -> Rates:
    card = record.get("card")
    return Rates(**{**record, "card": Rates(**card) if card else None})


def _made(kind, record: dict):
    """A record of this kind; older files lack what came later and has a default."""
    return kind(**{name: record[name] for name in kind.__dataclass_fields__ if name in record})


def _row(record: dict) -> Row:
    row = {**record, "seconds": tuple(record["seconds"]), "notes": tuple(record["notes"])}
    return _made(Row, row)


def write(path: Path, run: Document) -> None:
    """Write the file."""
    write_whole(path, "--json", text(run))


SAME = 1.05  # times within this factor are the same: runs differ by more than their intervals say
FASTER, SLOWER, ALIKE, UNDECIDED = "faster", "slower", "same", "undecided"
HEAD = ("processor", "cores", "system", "threads", "versions", "card")


@dataclass(frozen=True)
class ComparedRow:
    """A row in two runs: how many times as fast the new one is."""

    call: str
    size: str
    label: str
    word: str
    speed: Interval | None = None
    message: str = ""


def word(old: Interval, new: Interval) -> tuple[str, Interval]:
    """The word for two medians, and old/new with the ends of both intervals."""
    speed = Interval(old.value / new.value, old.low / new.high, old.high / new.low)
    if speed.low >= 1 / SAME and speed.high <= SAME:
        return ALIKE, speed
    if speed.low > SAME:
        return FASTER, speed
    if speed.high < 1 / SAME:
        return SLOWER, speed
    return UNDECIDED, speed


def compared(old: Document, new: list[WorkRows]) -> Iterator[ComparedRow]:
    """Every row of the new run that the old one has, too, and those that it has not."""
    before = {_key(group, row): row for group in old.groups for row in group.rows}
    for group in new:
        size = " ".join(f"{k}={v}" for k, v in group.work.size.items())
        for row in group.rows:
            was, call = before.get(_key(group, row)), group.work.call
            if was is None:
                yield ComparedRow(call, size, row.label, UNDECIDED, message="not in the old run")
            elif not (row.timed and was.timed):
                said = was.status if was.timed == row.timed or row.timed else row.status
                which = "the old run" if not was.timed else "the new run"
                if was.timed or row.timed:
                    text = f"{said} in {which}"
                    yield ComparedRow(call, size, row.label, UNDECIDED, message=text)
            else:
                found, speed = word(was.median, row.median)
                yield ComparedRow(call, size, row.label, found, speed)


def _key(group: WorkRows, row: Row) -> tuple:
    work = group.work
    return work.name, tuple(sorted(work.size.items())), work.dtype, work.vjp, row.label


def differences(old: dict, new: dict) -> list[str]:
    """What differs between the machines and versions of two runs."""
    lines = []
    for name in HEAD:
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        if isinstance(was, dict) and isinstance(now, dict):
            for key in sorted({*was, *now}):
                if was.get(key) != now.get(key):
                    told = f"{was.get(key, 'none')} before, {now.get(key, 'none')} now"
                    lines.append(f"{name}: {key} {told}")
        else:
            lines.append(f"{name}: {was} before, {now} now")
    return lines


def counts(rows: list[ComparedRow]) -> str:
    """How many rows have each word."""
    found = Counter(row.word for row in rows)
    return ", ".join(f"{found[w]} {w}" for w in (FASTER, SLOWER, ALIKE, UNDECIDED) if found[w])
