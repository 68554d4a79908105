"""`python -m refssm.command.benchmarks`: the tables of `docs/benchmarks.md`, from two JSON files.

The runs, of operators and of training steps, are made by `make benchmarks`. What stands between the
marks of the page is written by this program; people write the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from refssm.bench.growth import OF_TRANSFORMS, STEEPEST
from refssm.bench.results import lines
from refssm.bench.results.bars import bar_of, standing
from refssm.bench.results.document import Document, read
from refssm.bench.results.rows import Group
from refssm.conformance.selftest.stored import table

PAGE, RUN = Path("docs/benchmarks.md"), Path("docs/benchmarks.json")
STEPS = Path("docs/training_steps.json")
PICTURE = Path("docs/pictures/benchmarks.svg")
OPERATORS, TRAINING = "make benchmarks", "make benchmarks, training steps"  # who wrote a part
BARS_HEAD = ("function", "size", "median", "fastest peer", "its median", "ratio", "bar", "")


def marks(writer: str) -> tuple[str, str]:
    """The marks around what was written."""
    return f"<!-- written by {writer}: begin -->\n", f"<!-- written by {writer}: end -->\n"


def page(text: str, written: str, writer: str = OPERATORS) -> str:
    """The page with another text between its marks."""
    begin, end = marks(writer)
    before, begun, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ValueError(f"{PAGE}: no marks {begin.strip()} and {end.strip()}")
    return f"{before}{begin}\n{written}\n{end}{after}"


def tables(run: Document, pictured: bool = False) -> str:
    """The tables of a run as Markdown."""
    head = [*lines.head(dict(run.machine), run.rates), f"{run.started}, `{run.command}`"]
    parts = ["\n".join(f"- {line}" for line in head), "### Bars", _bars(run)]
    if pictured:
        place = PICTURE.relative_to(PAGE.parent)
        parts.append(f"![accuracy against time]({place})")
    parts += [part for group in run.groups for part in _work(group, run)]
    parts += ["### Growth", _growth(run)] if run.growth else []
    return "\n\n".join(parts) + "\n"


def _bars(run: Document) -> str:
    """One row for each bar, met, missed, or without a peer."""
    rows = []
    for group in run.groups:
        if bar_of(group) is None:
            continue
        found, base = standing(group, run.rates), group.base
        named = f"`{group.work.call}`", _size(group), _median(group, base)
        if found is None:
            rows.append((*named, "none", "", "", "", "no peer was timed"))
            continue
        peer = next(row for row in group.rows if row.label == found.against)
        others = "; ".join((found.word, *found.others))
        least = f"{found.least:g}×" + (" or not significantly less" * found.bar.significant)
        rows.append(
            (*named, peer.label, _median(group, peer), lines.times(found.came), least, others)
        )
    return table(BARS_HEAD, rows)


def _median(group: Group, row) -> str:
    del group
    return lines.seconds(row.median.value) if row is not None and row.timed else ""


def _size(group: Group) -> str:
    letters = " ".join(f"{k}={v}" for k, v in group.work.size.items())
    return f"{group.work.dtype} {letters}"


def _work(group: Group, run: Document) -> Iterator[str]:
    """Heading, table and remarks of one work."""
    yield f"### `{group.work.call}`, {_size(group)}"
    timed = [row for row in group.rows if row.timed]
    if timed:
        yield table(lines.HEADS, [lines.cells(group, row, run.rates) for row in timed])
    remarks = [f"- {r.label}: {r.status}, {r.message}" for r in group.rows if not r.timed]
    parts = sorted({row.accuracy_at for row in group.rows if row.accuracy_at})
    remarks += [f"- accuracy on {part}" for part in parts]
    remarks += [f"- {row.label}: {note}" for row in group.rows for note in row.notes]
    if remarks:
        yield "\n".join(remarks)


def _growth(run: Document) -> str:
    """Times by length, and the slope of each operator."""
    rows = []
    for g in run.growth:
        slopes = ["" if g.get(n) is None else f"{g[n]:.2f}" for n in ("slope", "late")]
        ends = ["", ""]
        if g["lengths"]:
            ends = [f"{lines.seconds(g['seconds'][i])} at l = {g['lengths'][i]}" for i in (0, -1)]
        rows.append((f"`{g['name']}`", g["dtype"], *ends, *slopes, g.get("message", "")))
    told = f"Slopes of log time against log l; wanted: {STEEPEST}, {OF_TRANSFORMS} with transforms."
    return (
        told
        + "\n\n"
        + table(("operator", "type", "first", "last", "slope", "of the longer half", ""), rows)
    )


def write() -> None:
    """Write the tables into the page, in the current folder."""
    run = read(RUN)
    text = page(PAGE.read_text(encoding="utf-8"), tables(run, PICTURE.is_file()))
    text = page(text, tables(read(STEPS)), TRAINING)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
