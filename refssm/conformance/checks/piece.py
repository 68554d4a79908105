"""A piece of a check: some of its cases, judged anywhere and at any time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from hashlib import blake2b
from typing import Any, NamedTuple

from refssm.conformance.cases.case import Case
from refssm.conformance.judging.verdict import Verdict


class Compared(NamedTuple):
    """How an old implementation did on one case, beside a new one."""

    equal: bool  # bit for bit
    failed: bool  # the old one is wrong
    ratio: float  # of the old one


class Piece(NamedTuple):
    """Up to ten cases, in the order in which they are drawn, judged up to the first failure."""

    cases: tuple[tuple[str, Verdict | None], ...]  # by key; None where it was declined
    lost: tuple[str, str] = ("", "")  # how the process of the implementation, of the old one, died
    compared: Mapping[str, Compared] = {}  # with the old one, by key
    closed: bool = False  # the failure is one beside the old one

    @property
    def failed(self) -> bool:
        """Whether its last case fails."""
        last = self.cases[-1][1] if self.cases else None
        return last is not None and not last.ok

    def record(self) -> dict:
        """The same in terms of JSON; numbers come back with every bit."""
        told: dict = {"cases": [[key, _fields(v) if v else None] for key, v in self.cases]}
        told |= {"lost": [*self.lost]} if any(self.lost) else {}
        if self.compared:
            told["compared"] = {key: [*c] for key, c in self.compared.items()}
        return told | ({"closed": True} if self.closed else {})


def from_record(told: dict) -> Piece:
    """A piece from its record."""
    cases = tuple((key, _verdict(v) if v else None) for key, v in told["cases"])
    compared = {key: Compared(*c) for key, c in told.get("compared", {}).items()}
    first, second = told.get("lost", ("", ""))
    return Piece(cases, (first, second), compared, told.get("closed", False))


def key_of(case: Case) -> str:
    """A case in a few bytes."""
    return blake2b(str(case).encode(), digest_size=12).hexdigest()


USUAL = {f.name: f.default for f in fields(Verdict) if f.default is not MISSING}


def _fields(verdict: Verdict) -> dict:
    """What is not as usual; arrays for pictures are made again where one is drawn."""
    told = {f.name: getattr(verdict, f.name) for f in fields(Verdict) if f.name != "damage"}
    return {name: x for name, x in told.items() if name not in USUAL or x != USUAL[name]}


def _verdict(told: dict[str, Any]) -> Verdict:
    fields: dict[str, Any] = {**told, "notes": tuple(told.get("notes", ()))}
    return Verdict(**fields)
