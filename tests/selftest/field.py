"""Judge the clones of public repositories and write the table that opens docs/findings.md.

    REFSSM_SUBJECTS=~/clones PYTHONPATH=tests python -m selftest.field --record

`refssm verify` runs in a process of its own for each repository, in the default profile. The rows
of all functions are kept in `docs/field.csv`; the last column is written by people and stays.
"""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import typer

from refssm import subjects
from refssm.conformance.calling.fingerprint import ROOT
from refssm.conformance.judging.result import FAILURES
from refssm.subjects.clones import CLONES, absent, path_of
from selftest.stored import table
from selftest.subjects import commit_of

ROWS, PAGE = Path("docs/field.csv"), Path("docs/findings.md")
BEGIN, END = "<!-- field: written by selftest.field -->", "<!-- end of field -->"
KINDS = ("right", "WRONG", "ERROR", "INACCURATE")  # how a verdict begins
WORDS = {"wrong": "WRONG", "error": "ERROR", "inaccurate": "INACCURATE"}
TYPES = {
    "bfloat16": "bf16",
    "float16": "f2",
    "float32": "f4",
    "float64": "f8",
    "complex64": "c8",
    "complex128": "c16",
}
PLUGINS = Path(subjects.__file__).parent


class Judged(NamedTuple):
    """One function of a repository, as the judge found it."""

    repository: str
    commit: str
    plugin: str  # file::function
    function: str  # the first line of the docstring of the plug-in's function
    operator: str
    types: str
    verdict: str  # grades of a right one; the failing checks of another one
    bits: str  # the least of the worst case of `value`, in its type
    finding: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What a row is known by when it is written again."""
        return self.repository, self.plugin, self.operator


def told(plugin: str) -> dict[str, tuple[str, str]]:
    """The plug-in's functions by name: the operator of each, and what it says of itself."""
    tree = ast.parse((PLUGINS / f"{plugin}.py").read_text(encoding="utf-8"))
    found = {}
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        for mark in node.decorator_list:
            first = mark.args[0] if isinstance(mark, ast.Call) and mark.args else None
            if isinstance(first, ast.Constant):
                words = (ast.get_docstring(node) or "").partition("\n")[0].rstrip(".")
                found[node.name] = str(first.value), words
    return found


def judged(name: str, plugin: str, workers: int, limit: int) -> list[Judged]:
    """The rows of one plug-in, from a run of the judge; RuntimeError if that is not to be had."""
    place = f"refssm.subjects.{plugin}"
    command = [sys.executable, "-m", "refssm", "verify", place, "--json", "--workers", f"{workers}"]
    paths = os.pathsep.join([str(ROOT.parent), os.environ.get("PYTHONPATH", "")])
    with TemporaryDirectory() as folder:  # counterexamples are left there
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": paths},
                capture_output=True,
                encoding="utf-8",
                check=False,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"no end within {limit} seconds") from None
    try:
        document = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise RuntimeError(done.stderr.strip()[-300:]) from None
    return list(rows_of(name, plugin, document["results"]))


def rows_of(name: str, plugin: str, results: Iterable[dict]) -> Iterator[Judged]:
    """A row for each function among the results."""
    path, of_functions = path_of(name), told(plugin)
    commit = commit_of(path) if path else ""
    only = {operator: function for function, (operator, _) in of_functions.items()}
    by_function: dict[str, list[dict]] = {}
    for result in results:
        function = result["function"] or only[result["operator"]]
        by_function.setdefault(function, []).append(result)
    for function, found in by_function.items():
        ran = [r for r in found if r["verdict"] != "skipped"]
        types = [t for t in TYPES if any(r["dtype"] == t for r in ran)]
        values = [r for r in ran if r["check"] == "value" and r["digits"]]
        worst = min(values, key=lambda r: r["bits"] / r["digits"], default=None)
        bits = f"{worst['bits']:.0f} of {worst['digits']}" if worst else ""
        repository, (operator, says) = CLONES[name].repository, of_functions[function]
        head = (repository, commit[:10], f"{plugin}::{function}", says, operator)
        yield Judged(*head, " ".join(TYPES[t] for t in types), verdict(ran), bits)


def verdict(results: list[dict]) -> str:
    """The failing checks by kind, worst first; without one, the grades."""
    parts = []
    for kind in ("wrong", "error", "inaccurate", "thin"):
        failing = dict.fromkeys(r["check"] for r in results if r["verdict"] == kind)
        if failing:
            parts.append(f"{WORDS.get(kind, kind)}: {', '.join(failing)}")
    if any(r["verdict"] in FAILURES for r in results):
        return "; ".join(parts)
    grades = sorted({r["grade"] for r in results if r["grade"] in "ABN"})
    return "; ".join([f"right, {', '.join(grades)}", *parts])


def read() -> list[Judged]:
    """The rows of the repository's file."""
    if not ROWS.exists():
        return []
    with ROWS.open(encoding="utf-8", newline="") as lines:
        return [Judged(**row) for row in csv.DictReader(lines)]


def merged(old: Iterable[Judged], new: Iterable[Judged], judged_again: set[str]) -> list[Judged]:
    """The rows, those of repositories judged again replaced; findings stay."""
    old = list(old)
    findings = {row.key: row.finding for row in old}
    kept = [row for row in old if row.plugin.partition("::")[0] not in judged_again]
    fresh = [row._replace(finding=findings.get(row.key, "")) for row in new]
    return sorted([*kept, *fresh], key=lambda row: (row.repository.lower(), *row.key[1:]))


def written(rows: list[Judged]) -> str:
    """The table of the page: one row for each repository; rows are sorted."""
    head = ("repository", "commit", "functions", *KINDS, "findings")
    return table(head, (_summary([*its]) for _, its in groupby(rows, key=attrgetter("repository"))))


def _summary(rows: list[Judged]) -> tuple[str, ...]:
    """The functions of one repository, counted by the worst verdict of each, and all findings."""
    commits = dict.fromkeys(row.commit for row in rows)
    counts = Counter(re.split("[:,]", row.verdict)[0] for row in rows)
    findings = dict.fromkeys(row.finding for row in rows if row.finding)
    shown = (str(counts[kind] or "") for kind in KINDS)
    return rows[0].repository, ", ".join(commits), str(len(rows)), *shown, "; ".join(findings)


def page(text: str, rows: list[Judged]) -> str:
    """The page with the table between its two marks."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{written(rows)}\n{END}{rest.partition(END)[2]}"


def main(
    only: Annotated[str, typer.Option(help="Repositories or plug-ins, by commas.")] = "",
    workers: Annotated[int, typer.Option(help="Processes of each run of the judge.")] = 2,
    limit: Annotated[int, typer.Option(help="Seconds for one plug-in.")] = 3600,
    record: Annotated[bool, typer.Option(help="Write docs/field.csv and the table.")] = False,
) -> None:
    """Judge what is there; say what is not. Rows of what is not judged stay as they are.

    With `--record` each plug-in's rows are written as soon as they are there.
    """
    asked = set(only.split(","))
    for name, clone in CLONES.items():
        plugins = [p for p in clone.modules if not only or {name, p} & asked]
        if plugins and (reason := absent(name)):
            typer.echo(f"skip {name}   {reason}")
            continue
        for plugin in plugins:
            try:
                found = judged(name, plugin, workers, limit)
            except RuntimeError as error:
                typer.echo(f"skip {plugin}   {error}")
                continue
            for row in found:
                typer.echo(f"{plugin}  {row.operator}  {row.types}  {row.verdict}  {row.bits}")
            if record:
                store(merged(read(), found, {plugin}))


def store(rows: list[Judged]) -> None:
    """Write the file and the table."""
    with ROWS.open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines, lineterminator="\n").writerows([Judged._fields, *rows])
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    typer.run(main)
