"""`make benchmarks` ends with it: the tables of `docs/benchmarks.md`, from JSON files.

The runs, of operators and of training steps, are made by `make benchmarks`, and on a machine with a
card by `make benchmarks-gpu`. What stands between the marks of the page is written by this program;
people write the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from selftest.stored import table

from docs.build.bars import BARS, BESIDE, bar_of, beside, standing, standings, wanted
from refssm.bench.growth import OF_TRANSFORMS, STEEPEST
from refssm.bench.results import lines
from refssm.bench.results.document import Document, read
from refssm.bench.results.rows import WorkRows
from refssm.bench.work.sizes import USUALLY

PAGE, RUN = Path("docs/benchmarks.md"), Path("docs/benchmarks.json")
STEPS = Path("docs/training_steps.json")
RECURRENCES = "benchmarks_recurrences*.json"  # beside the page: two runs, as there are many
CARD = "benchmarks_gpu*.json"  # beside the page: a machine with a card is lent for minutes
PICTURE = Path("docs/pictures/benchmarks.svg")
OPERATORS, TRAINING = "make benchmarks", "make benchmarks, training steps"  # who wrote a part
OF_RECURRENCES = "make benchmarks, recurrences"
ON_CARD = "make benchmarks-gpu"
CARD_HEAD = ("function", "size", "median", "with Python", "bar", "came", "")
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
    parts = [_head(run), "### Bars", _bars(run)]
    if pictured:
        place = PICTURE.relative_to(PAGE.parent)
        parts.append(f"![accuracy against time]({place})")
    parts += [part for group in run.groups for part in _work(group, run)]
    parts += ["### Growth", _growth(run)] if run.growth else []
    return "\n\n".join(parts) + "\n"


def runs_of(files: str) -> list[Document]:
    """The runs in files of such names beside the page, in their order."""
    return [read(place) for place in sorted(PAGE.parent.glob(files))]


def card_tables(runs: Sequence[Document]) -> str:
    """The section on a card: the tables of its runs, or which bars wait to be measured."""
    if runs:
        return "\n\n".join(part for run in runs for part in _card_run(run)) + "\n"
    rows = [(f"`{name}`", bars, "not measured yet") for name, bars in wanted()]
    told = "Not measured yet: no machine with a card was at hand. These bars wait for one:"
    return f"{told}\n\n{table(('operator', 'bars at the size `large`', ''), rows)}\n"


def _card_run(run: Document) -> Iterator[str]:
    """Machine, bars and works of one run."""
    yield _head(run)
    yield table(CARD_HEAD, [row for group in run.groups for row in _card_bars(group, run)])
    yield from (part for group in run.groups for part in _work(group, run))


def _card_bars(group: WorkRows, run: Document) -> Iterator[tuple[str, ...]]:
    """One row for each bar of the mirror on the GPU."""
    mirror = next((row for row in group.rows if row.kind == "GPU mirror"), None)
    for bar in standings(group, run.rates):
        waited = mirror.latency if mirror is not None else None
        times = _median(group, mirror), "" if waited is None else lines.seconds(waited)
        yield f"`{group.work.call}`", _size(group), *times, bar.wanted, bar.came, bar.word


def _head(run: Document) -> str:
    head = [*lines.head(dict(run.machine), run.rates), f"{run.started}, `{run.command}`"]
    return "\n".join(f"- {line}" for line in head)


def _bars(run: Document) -> str:
    """One row for each bar, met, missed, or without a peer."""
    rows = []
    for group in run.groups:
        rows += _beside(group, run)
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


def _beside(group: WorkRows, run: Document) -> Iterator[tuple[str, ...]]:
    """The row of a bar against another mirror of the same run."""
    found = beside(group, run.groups)
    if found is not None:
        named = f"`{group.work.call}`", _size(group), _median(group, group.base)
        other = f"the mirror of `{found.other.work.call}`"
        times = _median(found.other, found.other.base), f"{found.came:.2f} times its time"
        yield *named, other, *times, f"≤ {found.most:g} times", found.word


def recurrence_tables(runs: Sequence[Document]) -> str:
    """The tables of the runs of recurrences, or which bars wait for one."""
    if runs:
        return "\n\n".join(map(tables, runs))
    rows = []
    for name, bar in BARS.items():
        if name not in USUALLY:
            vjp = f", VJP ≥ {bar.vjp:g}×" * bool(bar.vjp) + f", floor {bar.floor:g}×" * bool(
                bar.floor
            )
            rows.append((f"`{name}`", f"≥ {bar.forward:g}× the fastest peer{vjp}"))
    rows += [(f"`{name}`", f"≤ {most:g} times as long as `{other}`")
             for name, (other, most) in BESIDE.items()]  # fmt: skip
    return f"No run is recorded. These bars wait for one:\n\n{table(('operator', 'bar'), rows)}\n"


def _median(group: WorkRows, row) -> str:
    del group
    return lines.seconds(row.median.value) if row is not None and row.timed else ""


def _size(group: WorkRows) -> str:
    letters = " ".join(f"{k}={v}" for k, v in group.work.size.items())
    return f"{group.work.dtype} {letters}"


def _work(group: WorkRows, run: Document) -> Iterator[str]:
    """Heading, table and remarks of one work."""
    yield f"### `{group.work.call}`, {_size(group)}"
    timed = [row for row in group.rows if row.timed]
    if timed:
        heads = lines.heads(group) if group.on_card else lines.HEADS
        yield table(heads, [lines.cells(group, row, run.rates) for row in timed])
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
    text = page(text, recurrence_tables(runs_of(RECURRENCES)), OF_RECURRENCES)
    text = page(text, tables(read(STEPS)), TRAINING)
    text = page(text, card_tables(runs_of(CARD)), ON_CARD)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
