"""The page `docs/tables.md` and the table of checks in `docs/judge_checks.md`, from the program.

`make tables` writes both, and `docs/soak.md` from the stored results of the soak.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from selftest.stored import NAMING, NamingRate, read, table

from refssm._declaration.layout import canonical
from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance.checks.checks import rules

PAGE, CHECKS = Path("docs/tables.md"), Path("docs/judge_checks.md")
BEGIN, END = "<!-- checks: begin, by make tables -->", "<!-- checks: end -->"
FOLDER = Path("docs/operators")


def overview() -> str:
    """Operators by family, contracts, and how often planted bugs are named."""
    parts = [HEAD, *_operators(), CONTRACTS, _contracts(), NAMED, _named()]
    return "\n\n".join(parts) + "\n"


def with_checks(page: str) -> str:
    """A page with the sentence of each check between the two marks."""
    before, _, rest = page.partition(BEGIN)
    rows = ((f"`{rule.name}`", rule.sentence) for rule in rules())
    return (
        f"{before}{BEGIN}\n{table(('check', 'what it says'), rows)}\n{END}{rest.partition(END)[2]}"
    )


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.lstrip("# ").replace("`", "").lower())
    return kept.replace(" ", "-")


def _operators() -> Iterator[str]:
    """One table for each family, in the order of the catalog."""
    places = dict(_places())
    for family in dict.fromkeys(op.family for op in OPERATORS):
        rows = (_row(op, places) for op in OPERATORS if op.family == family)
        yield f"### {family}\n\n{table(('operator', 'formula', 'layout', 'contract', 'has'), rows)}"


def _row(op: Operator, places: dict[str, str]) -> tuple[str, ...]:
    formula = (op.reference.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    layout = "" if op.constructor else f"`{canonical(op)}`"
    roles = {"vjp": "gradient", "enclosure": "enclosure", "jit": "mirror", "gpu": "GPU mirror"}
    has = ", ".join(word for role, word in roles.items() if role not in op.lacks)
    return f"[`{op}`]({places[op.name]})", f"`{formula}`", layout, op.contract.name, has


def _places() -> Iterator[tuple[str, str]]:
    """Page and heading of each operator."""
    for path in sorted(FOLDER.glob("*.md")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(("# ", "## ")):
                name = line.rpartition(" ")[2].strip("`")
                yield name, f"operators/{path.name}#{anchor(line)}"


def _contracts() -> str:
    contracts = dict.fromkeys(op.contract for op in OPERATORS)
    counts = {c: sum(op.contract is c for op in OPERATORS) for c in contracts}
    rows = ((c.name, c.words, str(counts[c])) for c in sorted(contracts, key=lambda c: c.name))
    return table(("contract", "errors are measured against", "operators"), rows)


def _named() -> str:
    head = (
        "bits lost", "bugs that did harm", "named first", "no name", "name of another bug",
        "a pattern", "honest programs refused", "of them called a bug", "date", "commit",
    )  # fmt: skip
    runs = [row for row in read(NAMING, NamingRate) if row.bugs]  # not honest programs alone
    return table(head, runs[-1:])


HEAD = f"""\
# All operators

This page is written by `make tables`. Do not edit it.

## Operators

All {len(OPERATORS)} operators, by family. The formula is the first line of the docstring. The
layout is the order of axes that `refssm show` prints. The
[contract](judge_rules.md#contracts) says how errors are measured. Every operator has a reference
and an mpmath oracle. The last column says which of these it has too: a gradient by hand, an oracle
in ball arithmetic (enclosure), a compiled mirror in `refssm.jit`."""
CONTRACTS = "## Contracts"
NAMED = f"""\
## How often a planted bug is named

The last run; [naming_rate.csv]({NAMING.name}) has the others.
`PYTHONPATH=tests python -m selftest.naming_rate --record` adds a row: it plants each bug in an
honest implementation instead of the reference, judges it, and counts how often `looks like:` names
this bug first. Such a run needs about 40 minutes on two cores. It also judges honest programs that
were made inaccurate: they lose some bits of their arguments or results. None of those may be called
by the name of a bug."""
