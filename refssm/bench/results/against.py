"""Two runs compared, row by row: faster, slower, same or undecided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from refssm.bench.measuring.timing import Interval
from refssm.bench.results.document import Document
from refssm.bench.results.rows import Row, WorkRows

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
