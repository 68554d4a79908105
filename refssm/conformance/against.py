"""`--against old.py`: a new implementation beside an old one, on the same cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from refssm.conformance.candidate import Broken, Candidate
from refssm.conformance.cases import Case
from refssm.conformance.verdict import Verdict


@dataclass
class Tally:
    """How the two compared in one type."""

    cases: int = 0
    equal: int = 0  # bit for bit
    worst: float = 0.0  # ratio of the old one
    failed: int = 0  # cases in which the old one is wrong


@dataclass
class Beside:
    """Judges both on each case; the new one fails where it is wrong and the old one is right."""

    old: Candidate
    called: str
    tallies: dict[str, Tally] = field(default_factory=dict)  # by type
    _closed: set[str] = field(default_factory=set)  # types that failed: what follows is shrinking

    def judge(self) -> Callable[[Candidate, Case], Verdict]:
        """The judge of one case."""
        return self._judge

    def _judge(self, new: Candidate, case: Case) -> Verdict:
        arrays, statics = new.given(case)
        gauged = new.expect(arrays, statics)
        theirs, before = _result(self.old.judged_in(case.type.name), arrays, statics, gauged)
        ours, verdict = _result(new, arrays, statics, gauged)
        if case.type.name not in self._closed:
            tally = self.tallies.setdefault(case.type.name, Tally())
            _count(tally, ours, theirs, before)
        if before.error:
            return replace(before, message=f"{self.called} {before.message}")
        if verdict.ok:
            return verdict
        if before.ok:
            self._closed.add(case.type.name)
            message = f"{self.called} is right here (ratio {before.ratio:.2g}), this one is not: "
            return replace(verdict, message=message + verdict.message)
        return Verdict("-", notes=("both are wrong on some cases: see value",))

    def told(self, dtype: str) -> str:
        """How the two compare, in one line."""
        tally = self.tallies.get(dtype, Tally())
        line = f"{self.called}: worst ratio {tally.worst:.2g}"
        if tally.failed:
            line += f" where it is right, wrong in {tally.failed} of {tally.cases} cases"
        return f"{line}; bit for bit equal in {tally.equal} of {tally.cases}"


def _count(tally: Tally, ours, theirs, before: Verdict) -> None:
    tally.cases += 1
    equal = [np.array_equal(y, x, equal_nan=True) for y, x in zip(ours, theirs, strict=False)]
    tally.equal += bool(equal) and all(equal)
    tally.failed += not before.ok
    if before.ok:
        tally.worst = max(tally.worst, before.ratio)


def _result(candidate: Candidate, arrays, statics, gauged) -> tuple[tuple, Verdict]:
    """The outputs of one of them, and the verdict on them."""
    try:
        y = candidate.results(arrays, statics)
    except Broken as broken:
        return (), broken.verdict
    return y, candidate.graded(arrays, y, gauged)
