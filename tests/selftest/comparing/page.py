"""The page about the comparison, from the rows of `docs/compare.csv`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import isnan
from pathlib import Path
from statistics import median
from typing import Protocol

from selftest import stored
from selftest.comparing.programs import APART, GROUPS, NAMES, RIGHT, TASK, Program
from selftest.comparing.rows import Row
from selftest.comparing.tasks import TASKS
from selftest.comparing.text import APART_TEXT, HOW, LIMITS, REFUSED, TASK_TEXT, TITLE, WHY_TEXT

PAGE = Path("docs/compare.md")
FEW = 5  # right programs named for each check


class Method(Protocol):
    """What the page needs of a check, or of the judge."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def source(self) -> str:
        """Where its numbers were read, or how it is called."""
        ...

    @property
    def told(self) -> str:
        """Its rule, sizes and inputs."""
        ...

    @property
    def own(self) -> tuple[str, ...]:
        """The operators that it was made for."""
        ...

    def run(self, program: Program) -> tuple[str, float]:
        """What differs, or "", and the seconds of the processor."""
        ...


Methods = Sequence[Method]
Rows = Sequence[Row]


def planted(rows: Iterable[Row]) -> list[Row]:
    """The wrong programs that were planted for the judge."""
    return [row for row in rows if row.group in GROUPS]


def of_group(rows: Iterable[Row], group: str) -> list[Row]:
    """The programs of one group."""
    return [row for row in rows if row.group == group]


def with_verdict(rows: Iterable[Row], method: Method, word: str) -> list[Row]:
    """The rows with this verdict of one method."""
    return [row for row in rows if row.verdict(method.name) == word]


def seconds(rows: Iterable[Row], method: Method) -> str:
    """The median of the seconds of the programs that were timed."""
    spent = [row.seconds(method.name) for row in rows]
    known = [s for s in spent if not isnan(s)]
    return f"{median(known):.2g}" if known else "—"


def totals(rows: Rows, methods: Methods) -> str:
    """The main table: what each method catches by group, and what it refuses."""
    wrong, right = planted(rows), of_group(rows, RIGHT)
    groups = {group: of_group(rows, group) for group in GROUPS}
    head = ["check", f"caught, of {len(wrong)} wrong"]
    head += [f"{group} ({len(found)})" for group, found in groups.items()]
    head += [f"refused, of {len(right)} right", "seconds for a wrong one", "for a right one"]
    cells = [
        [
            m.name,
            f"**{len(with_verdict(wrong, m, 'caught'))}**",
            *(str(len(with_verdict(found, m, "caught"))) for found in groups.values()),
            f"**{len(with_verdict(right, m, 'refused'))}**",
            seconds(wrong, m),
            seconds(right, m),
        ]
        for m in methods
    ]
    return stored.table(head, cells)


def by_operator(rows: Rows, methods: Methods) -> str:
    """Caught wrong programs, and refused right ones, of each operator."""
    cells = []
    for name in NAMES:
        mine = [row for row in rows if row.operator == name]
        wrong, right = planted(mine), of_group(mine, RIGHT)
        line = [f"`{name}`", f"{len(wrong)}, {len(right)}"]
        for m in methods:
            caught, refused = with_verdict(wrong, m, "caught"), with_verdict(right, m, "refused")
            cell = f"{len(caught)}, {len(refused)}"
            line.append(f"**{cell}**" if name in m.own else cell)
        cells += [line] if mine else []
    return stored.table(["operator", "wrong, right", *(m.name for m in methods)], cells)


def misses(rows: Rows, methods: Methods) -> Iterator[str]:
    """For each method and group: how many it misses, and one of them."""
    for m in methods:
        yield f"\n**{m.name}**\n"
        missed = with_verdict(planted(rows), m, "missed")
        if not missed:
            yield "- misses none: a test requires that it catches each of them."
        for group in GROUPS:
            found, all_ = of_group(missed, group), of_group(rows, group)
            if found:
                row = example(found, m)
                yield (
                    f"- {group}: {len(found)} of {len(all_)}, such as `{row.operator}`: {row.what}"
                )


def example(missed: Rows, method: Method) -> Row:
    """One missed bug: of an operator that the method was made for, if there is one."""
    own = [row for row in missed if row.operator in method.own]
    found = own or missed
    return found[len(found) // 2]


def refusals(rows: Rows, methods: Methods) -> Iterator[str]:
    """For each method: the right programs that it refuses, and why."""
    for m in methods:
        refused = with_verdict(of_group(rows, RIGHT), m, "refused")
        if not refused:
            yield f"- **{m.name}** refuses none."
            continue
        counts = Counter(row.operator for row in refused)
        told = ", ".join(f"`{name}` {count}" for name, count in counts.items())
        yield f"- **{m.name}** refuses {len(refused)}: {told}. Such as"
        firsts = {row.operator: row for row in reversed(refused)}
        for row in [firsts[name] for name in counts][:FEW]:
            yield f"  - `{row.operator}`, {row.program}: {reason(row, m)}"


def reason(row: Row, method: Method) -> str:
    """Why a method refused a right program."""
    parts = (part.partition(": ") for part in row.reasons.split(" | "))
    return next((why for name, _, why in parts if name == method.name), "")


def beside(rows: Rows, methods: Methods, group: str) -> str:
    """The table of programs that nobody planted for the judge."""
    found = of_group(rows, group)
    cells = [
        [f"`{row.operator}`", row.what, *(row.verdict(m.name) for m in methods)] for row in found
    ]
    counts = (f"**{len(with_verdict(found, m, 'caught'))}**" for m in methods)
    cells.append([f"caught, of {len(found)}", "", *counts])
    return stored.table(["operator", "mistake", *(m.name for m in methods)], cells)


def by_task(rows: Rows, methods: Methods) -> str:
    """What is caught of the wrong values of each task's operator."""
    cells = []
    for name, task in TASKS.items():
        wrong = [r for r in planted(rows) if r.operator == name and r.group != "gradients"]
        caught = (f"{len(with_verdict(wrong, m, 'caught'))}" for m in methods)
        cells.append([task, f"`{name}`", f"{len(wrong)}", *caught])
    return stored.table(["task", "operator", "wrong", *(m.name for m in methods)], cells)


def missed_in_tasks(rows: Rows, method: Method) -> Iterator[str]:
    """What a check misses of the wrong values of each task's operator, but for conduct."""
    for name in TASKS:
        missed = [r for r in with_verdict(planted(rows), method, "missed") if r.operator == name]
        for group in ("results", "precision", "borders", "special"):
            told = "; ".join(row.what for row in of_group(missed, group))
            if told:
                yield f"- `{name}`, {group}: {told}"


def page(rows: Rows, methods: Methods) -> str:
    """The whole page."""
    groups = stored.table(("group", "meaning"), [*GROUPS.items()])
    checks = stored.table(
        ("check", "rule, sizes and inputs", "read in"),
        [(m.name, m.told, m.source) for m in methods],
    )
    last = max(rows, key=lambda row: row.date)
    parts = [
        TITLE,
        totals(rows, methods),
        f"Recorded up to {last.date}, after {last.commit}. The groups of wrong kernels:",
        groups,
        "## The checks",
        checks,
        HOW,
        "## By operator",
        "Wrong kernels caught, right kernels refused; bold where the library tests this operator "
        "itself. Elsewhere its numbers are borrowed.",
        by_operator(rows, methods),
        "## What each check misses",
        "\n".join(misses(rows, methods)).strip(),
        "## Right kernels refused",
        REFUSED,
        "\n".join(refusals(rows, methods)),
        "## Bugs that were not planted for the judge",
        APART_TEXT,
        beside(rows, methods, APART),
        TASK_TEXT,
        by_task(rows, methods),
        *_of_task(rows, methods),
        WHY_TEXT,
        beside(rows, methods, TASK),
        LIMITS,
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _of_task(rows: Rows, methods: Methods) -> tuple[str, str]:
    """What the check of the tasks misses, with a sentence before it."""
    theirs = next(m for m in methods if {*TASKS} <= {*m.own} and m.name == "GPU MODE")
    return f"{theirs.name} misses of these, besides conduct:", "\n".join(
        missed_in_tasks(rows, theirs)
    )
