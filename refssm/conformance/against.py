"""`--against old.py`: a new implementation beside an old one, on the same cases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from refssm.conformance.candidate import Broken, Candidate
from refssm.conformance.cases import Case
from refssm.conformance.judge import Verdict


@dataclass
class Beside:
    """Judges both on each case; the new one fails where it is wrong and the old one is right."""

    old: Candidate
    called: str
    cases: int = 0
    equal: int = 0  # bit for bit
    worst: float = 0.0  # ratio of the old one
    failed: int = 0  # cases in which the old one is wrong
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
            self._count(ours, theirs, before)
        if verdict.ok:
            return verdict
        self._closed.add(case.type.name)
        if before.ok:
            message = f"{self.called} is right here (ratio {before.ratio:.2g}), this one is not: "
            return replace(verdict, message=message + verdict.message)
        return Verdict("-", notes=("both are wrong on some cases: see value",))

    def _count(self, ours, theirs, before: Verdict) -> None:
        self.cases += 1
        pairs = zip(ours, theirs, strict=False)
        equal = [np.array_equal(y, other, equal_nan=True) for y, other in pairs]
        self.equal += bool(equal) and all(equal)
        self.failed += not before.ok
        if before.ok:
            self.worst = max(self.worst, before.ratio)

    def told(self) -> str:
        """How the two compare, in one line."""
        line = f"{self.called}: worst ratio {self.worst:.2g}"
        if self.failed:
            line += f" where it is right, wrong in {self.failed} of {self.cases} cases"
        return f"{line}; bit for bit equal in {self.equal} of {self.cases}"


def _result(candidate: Candidate, arrays, statics, gauged) -> tuple[tuple, Verdict]:
    """The outputs of one of them, and the verdict on them."""
    try:
        y = candidate.results(arrays, statics)
    except Broken as broken:
        return (), broken.verdict
    return y, candidate.graded(arrays, y, gauged)
