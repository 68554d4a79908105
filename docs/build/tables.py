"""`make tables`: write those parts of pages in `docs` that repeat the program.

These are rows of the pages in `docs/operators` and `docs/layers`, from the declarations, the pages
`docs/tables.md` and `docs/soak.md`, and the table of checks in `docs/judge_checks.md`.

Under the heading of an operator, the table that begins with `| | |` has three rows written by this
program: call, layout, traits. People write all other rows, and remarks after a semicolon.
"""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path

from selftest import stored

from docs.build import layer_tables, overview, picture_page
from refssm._declaration.contract import Linear
from refssm._declaration.layout import canonical
from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS

FOLDER = Path("docs/operators")
HEAD = "| | |\n|---|---|\n"
WRITTEN = ("call", "layout", "traits")


def page(text: str) -> str:
    """The page, with the rows of each operator's table replaced from its declaration."""
    named = {op.name: op for op in OPERATORS}
    sections = re.split(r"^(?=##? )", text, flags=re.MULTILINE)
    headings = (section.partition("\n")[0].rpartition(" ")[2].strip("`") for section in sections)
    found = zip(sections, map(named.get, headings), strict=True)
    return "".join(section if op is None else _section(section, op) for section, op in found)


def _section(text: str, op: Operator) -> str:
    before, head, rest = text.partition(HEAD)
    if not head:
        return text
    lines = [*takewhile(lambda line: line.startswith("|"), rest.splitlines(keepends=True))]
    old = dict(line.strip()[2:-2].split(" | ", 1) for line in lines)
    new = {name: cell + _remark(old.get(name, "")) for name, cell in rows(op).items()}
    theirs = {name: cell for name, cell in old.items() if name not in WRITTEN}
    order = ["formula", "call", "layout", *theirs, "traits"]
    cells = {name: (new | theirs)[name] for name in order if name in new | theirs}
    table = "".join(f"| {name} | {cell} |\n" for name, cell in cells.items())
    return f"{before}{head}{table}{rest.removeprefix(''.join(lines))}"


def _remark(cell: str) -> str:
    """A person's remark in a row, with its semicolon."""
    return "".join(cell.partition("; ")[1:])


def rows(op: Operator) -> dict[str, str]:
    """The rows that follow from a declaration; layout and traits only if it has some."""
    given = [*op.inputs, *(f"{name}={op.defaults.get(name, '…')}" for name in op.static)]
    results = f"{', '.join(op.outputs)} = " if len(op.outputs) > 1 else ""
    found = {"call": f"`{results}{op}({', '.join(given)})`, signature `{op.signature}`"}
    if not op.constructor:
        found["layout"] = f"`{canonical(op)}`"
    if op.traits:
        found["traits"] = traits(op)
    return found


def traits(op: Operator) -> str:
    """An operator's traits in words."""
    said = [
        name
        for name in ("causal", "anticausal", "time-invariant", "state", "transform")
        if name in op.traits
    ]
    groups: dict[str, list[Linear]] = {}
    for linear in sorted(op.linear_in, key=lambda one: [*map([*op.inputs].index, one.arguments)]):
        outputs = " and ".join(f"`{op.outputs[j]}`" for j in linear.outputs)
        whole = len(linear.outputs) == len(op.outputs)
        groups.setdefault("" if whole else f"{outputs} ", []).append(linear)
    whole_first = sorted(groups, key=bool)
    return ", ".join(said + [f"{outputs}linear {_in(groups[outputs])}" for outputs in whole_first])


def _in(groups: list[Linear]) -> str:
    """ "in `u`, in `B` and `D` together"."""
    quoted = [" and ".join(f"`{name}`" for name in group.arguments) for group in groups]
    if all(len(group.arguments) == 1 for group in groups):
        *before, last = (f"in {names}" for names in quoted)
        return f"{', '.join(before)} and {last}" if before else last
    pairs = zip(groups, quoted, strict=True)
    return ", ".join(f"in {names}{' together' * (len(g.arguments) > 1)}" for g, names in pairs)


def write() -> None:
    """Write all of them, in the current folder."""
    picture_page.write()
    for path in sorted(FOLDER.glob("*.md")):
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
    layer_tables.write()
    overview.PAGE.write_text(overview.overview(), encoding="utf-8")
    checks = overview.with_checks(overview.CHECKS.read_text(encoding="utf-8"))
    overview.CHECKS.write_text(checks, encoding="utf-8")
    soaked = stored.read(stored.SOAK, stored.Soaked)
    stored.SOAK_PAGE.write_text(stored.soak_page(soaked), encoding="utf-8")


if __name__ == "__main__":
    write()
