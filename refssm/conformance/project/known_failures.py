"""KnownFailures failures: an author's file of entries, each with a reason and an expiry date.

    [[known]]
    id = "linear_scan/nan[float32]"    # as the report prints it; * matches anything
    implementation = "my_ops.py"       # optional: a target, or the pytest function
    reason = "NaN is masked, see issue 12"
    expires = 2027-01-31

A listed failure is reported and does not fail the run. An entry is an error if it hides nothing: if
it matches no check of the judged implementations, if its check passes, or if it has expired.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from refssm._declaration.implements import TYPES
from refssm._declaration.names import did_you_mean
from refssm.catalog import judged
from refssm.conformance.checks.checks import (
    COMPARING,
    NAMES,
    PROFILES,
    checks_of,
    rule_named,
    types_of,
)
from refssm.conformance.checks.law import Law
from refssm.conformance.judging.result import MISFIT, Result
from refssm.conformance.project.pyproject import document
from refssm.conformance.usage_error import UsageError, shown

KEYS = ("id", "implementation", "reason", "expires")
DAYS = 90  # days until a generated entry expires
FUNCTION = re.compile(r"::[\w*]+(?=/)")  # one of several functions of an operator in a file
ID = re.compile(r"([\w*]+)(?:::[\w*]+)?/([\w*]+)\[([\w*]+)\]")


@dataclass(frozen=True)
class KnownFailure:
    """One known failure."""

    id: str
    reason: str
    expires: date
    implementation: str = ""

    def __str__(self):
        return self.id + (f" of {self.implementation}" if self.implementation else "")

    def of(self, names: Iterable[str]) -> bool:
        """True if the entry applies to an implementation with one of these names."""
        return not self.implementation or any(_like(self.implementation, n) for n in names)

    def matches(self, id: str) -> bool:
        """True if the entry applies to the check with this id, of any function if it names none."""
        return _like(self.id, id) or _like(self.id, FUNCTION.sub("", id))

    @property
    def exact(self) -> bool:
        """True if the entry names a single check."""
        return "*" not in self.id


@dataclass
class KnownFailures:
    """The list of entries, and the results that each entry matched in this run."""

    path: Path | None = None
    entries: tuple[KnownFailure, ...] = ()
    today: date = field(default_factory=date.today)
    met: list[tuple[KnownFailure, Result]] = field(default_factory=list)
    possible: list[JudgedTarget] = field(default_factory=list)

    def __bool__(self):
        return bool(self.entries)

    def __str__(self):
        return f"{self.path}, {len(self.entries)} entr{'ies' if len(self.entries) > 1 else 'y'}"

    def entry(self, id: str, names: Iterable[str]) -> KnownFailure | None:
        """The first matching entry; expired entries come last."""
        found = [e for e in self.entries if e.matches(id) and e.of(names)]
        return min(found, key=self.expired, default=None)

    def expired(self, entry: KnownFailure) -> bool:
        """True if the entry's last day is over."""
        return self.today > entry.expires

    def marked(self, result: Result) -> Result:
        """The result, marked as known if an entry lists its failure."""
        names = self.names(result.implementation)
        self.met += [(e, result) for e in self.entries if e.matches(result.id) and e.of(names)]
        entry = self.entry(result.id, names)
        if entry is None or self.expired(entry) or not result.failed:
            return result
        if result.kind == MISFIT and "/*[" not in entry.id:
            return result  # it stands for all checks
        return replace(result, known=entry.reason, expires=entry.expires.isoformat())

    def judged(self, target: str, trials: Iterable, part: bool = False) -> None:
        """Record which checks a target, or a part of it, may have."""
        ids = {id for trial in trials for id in possible(trial)}
        self.possible.append(JudgedTarget(self.names(target), ids, part))

    def names(self, target: str) -> tuple[str, ...]:
        """Names of a target in entries: with or without function, relative to here or the file."""
        place, mark, function = target.partition("::" if "::" in target else ":")
        places = [place]
        if os.path.isfile(place) and self.path:
            places.append(os.path.relpath(place, self.path.resolve().parent))
        return tuple(p + end for p in places for end in dict.fromkeys(("", mark + function)))

    def complaints(self, *, whole=True, every=False, narrowed=False) -> list[str]:
        """One sentence for each entry that hides nothing.

        `whole`: all targets that are known were judged; `every`: also those known by name only.
        `narrowed`: the inputs were restricted, so a pass does not show that a failure is gone.
        """
        told = [(e, self._complaint(e, whole, every, narrowed)) for e in self.entries]
        return [f"{self.path}: {entry} {what}" for entry, what in told if what]

    def _complaint(self, entry: KnownFailure, whole: bool, every: bool, narrowed: bool) -> str:
        results = [result for e, result in self.met if e is entry]
        passed = [r for r in results if r.verdict == "pass" and said_enough(r.profile, r.check)]
        gone = passed and not narrowed and not any(r.failed for r in results)
        if results and self.expired(entry):
            then = "and passes now: remove it" if gone else "fix the failure or set a later date"
            return f"expired on {entry.expires}, {then} (reason: {entry.reason})"
        if gone:
            return f"passes now: remove it (reason: {entry.reason})"
        fits = bool(results) or self._fits(entry, whole, every)
        return "" if fits else "matches no check of this run: remove it"

    def _fits(self, entry: KnownFailure, whole: bool, every: bool) -> bool:
        """True if the entry is about a check that this run left out."""
        mine = [judged for judged in self.possible if entry.of(judged.names)]
        ids = {id for judged in mine for id in judged.ids}
        if any(entry.matches(id) for id in ids):
            return True
        if entry.implementation and not mine:
            return not every
        operator = FUNCTION.sub("", entry.id).partition("/")[0]
        if any(_like(operator, FUNCTION.sub("", id).partition("/")[0]) for id in ids):
            return False
        return all(judged.part for judged in mine) if entry.implementation else not whole


class JudgedTarget(NamedTuple):
    """A target: its names and the ids of the checks that it may have."""

    names: Sequence[str]
    ids: set[str]
    part: bool


def said_enough(profile: str, check: str) -> bool:
    """True if a pass shows that a failure is gone; a quick run has too few cases of a law."""
    law = isinstance(rule_named(check), Law)
    return not law or PROFILES[profile].law >= PROFILES["default"].law


def possible(trial) -> set[str]:
    """The ids of all checks that any run may have of an implementation."""
    op, offer, function = trial.op, trial.offer, trial.session.settings.function
    found = set()
    for dtype in offer.dtypes or types_of(op, half=True):  # laws run in one type
        checks = checks_of(op, PROFILES["thorough"], [dtype], vjp=trial.candidate.has_vjp)
        found |= {check.id for check in checks} | {f"{op}/{c.name}[{dtype}]" for c in COMPARING}
    return {id.replace("/", f"::{function}/", 1) for id in found} if function else found


def read(path: Path, today: date | None = None) -> KnownFailures:
    """The list in a file; UsageError for the first error in it."""
    table = document(path)
    tables = table.pop("known", [])
    if table:
        raise UsageError(f"{path}: wanted tables [[known]], got {shown(next(iter(table)))}")
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise UsageError(f"{path}: wanted tables [[known]], with two brackets on each side")
    entries = tuple(_entry(path, i, table) for i, table in enumerate(tables, 1))
    for i, entry in enumerate(entries):
        if any((e.id, e.implementation) == (entry.id, entry.implementation) for e in entries[:i]):
            raise UsageError(f"{path}: {entry} is listed twice")
    return KnownFailures(path, entries, today or date.today())


def skeleton(results: Iterable[Result], today: date | None = None) -> str:
    """A TOML list of the failures among results, with empty reasons to fill in."""
    until = (today or date.today()) + timedelta(days=DAYS)
    tables = (
        f'[[known]]\nid = "{r.id}"\nimplementation = {_quoted(r.implementation)}\n'
        f'reason = ""  # {_comment(r.message)}\nexpires = {until}\n'
        for r in results
        if r.failed
    )
    return "\n".join(tables)


def _comment(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _entry(path: Path, number: int, table: dict) -> KnownFailure:
    """One validated entry."""
    where = f"{path}: entry {number}"
    for key in table:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS)
            raise UsageError(f"{where}: unknown key {shown(key)}; {hint}wanted {', '.join(KEYS)}")
    for key in KEYS:
        if key not in table and key != "implementation":
            raise UsageError(f"{where}: `{key}` is missing; wanted id, reason and expires")
    for key in ("id", "implementation", "reason"):
        value = table.get(key, "-")
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            told = f" ({table['id']})" if key != "id" else ""
            raise UsageError(f"{where}{told}: `{key}`: wanted a text, got {shown(value)}")
    day: Any = table["expires"]
    if not isinstance(day, date) or isinstance(day, datetime):
        raise UsageError(
            f"{where}: `expires`: wanted a date without quotes, as 2027-01-31, got {shown(day)}"
        )
    _check_id(where, table["id"])
    return KnownFailure(table["id"], table["reason"], day, table.get("implementation", ""))


def _check_id(where: str, id: str) -> None:
    """UsageError for an id that no check can have."""
    match = ID.fullmatch(id)
    if match is None:
        raise UsageError(f"{where}: wanted an id operator/check[dtype], got {shown(id)}")
    kinds = (("operator", [op.name for op in judged()]), ("check", NAMES), ("type", TYPES))
    for word, (kind, known) in zip(match.groups(), kinds, strict=True):
        if not any(_like(word, name) for name in known):
            hint = did_you_mean(word, known) or "`refssm show` prints the names; "
            raise UsageError(f"{where}: {shown(id)}: unknown {kind} {word!r}; {hint.rstrip('; ')}")


def _like(pattern: str, name: str) -> bool:
    """True if a name matches a pattern, in which only * has a special meaning."""
    parts = (re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(".*".join(parts), name) is not None
