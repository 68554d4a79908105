"""Up to ten consecutive cases of a check; any process may judge them."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from hashlib import blake2b
from typing import Any, NamedTuple

from refssm.conformance.cases.case import Case
from refssm.conformance.judging.verdict import Verdict


class ComparedCase(NamedTuple):
    """The comparison of a new with an old implementation on one case."""

    equal: bool  # equal bit by bit
    failed: bool  # the old implementation is wrong
    ratio: float  # the old implementation's ratio


class Piece(NamedTuple):
    """Up to ten cases in the order in which they are drawn, up to one that ends the search."""

    cases: tuple[tuple[str, Verdict | None], ...]  # key and verdict; None if declined
    lost: tuple[str, str] = ("", "")  # how the child process died, and that of the old one
    compared: Mapping[str, ComparedCase] = {}  # the comparisons with the old one, by key

    @property
    def failed(self) -> bool:
        """True if a case fails."""
        return any(verdict is not None and not verdict.ok for _, verdict in self.cases)

    @property
    def died(self) -> bool:
        """True if the last case ended the child process."""
        last = self.cases[-1][1] if self.cases else None
        return last is not None and last.died

    def record(self) -> dict:
        """The piece as JSON data; numbers keep every bit."""
        told: dict = {"cases": [[key, _fields(v) if v else None] for key, v in self.cases]}
        told |= {"lost": [*self.lost]} if any(self.lost) else {}
        if self.compared:
            told["compared"] = {key: [*c] for key, c in self.compared.items()}
        return told


def from_record(told: dict) -> Piece:
    """The piece of such a record."""
    cases = tuple((key, _verdict(v) if v else None) for key, v in told["cases"])
    compared = {key: ComparedCase(*c) for key, c in told.get("compared", {}).items()}
    first, second = told.get("lost", ("", ""))
    return Piece(cases, (first, second), compared)


def key_of(case: Case) -> str:
    """A short hash of a case."""
    return blake2b(str(case).encode(), digest_size=12).hexdigest()


USUAL = {f.name: f.default for f in fields(Verdict) if f.default is not MISSING}


def _fields(verdict: Verdict) -> dict:
    """The fields that differ from their defaults, without the arrays for pictures."""
    told = {f.name: getattr(verdict, f.name) for f in fields(Verdict) if f.name != "damage"}
    return {name: x for name, x in told.items() if name not in USUAL or x != USUAL[name]}


def _verdict(told: dict[str, Any]) -> Verdict:
    fields: dict[str, Any] = {**told, "notes": tuple(told.get("notes", ()))}
    return Verdict(**fields)
