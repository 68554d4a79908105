"""`--against old.py`: judge a new and an old implementation on the same cases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from refssm.conformance.cases.case import Case
from refssm.conformance.checks.candidate import Broken, Candidate
from refssm.conformance.checks.piece import Compared, key_of
from refssm.conformance.judging.verdict import Verdict


@dataclass
class Beside:
    """Judges both on each case; the new one fails where it is wrong and the old one is right."""

    old: Candidate
    called: str  # the old one's name in reports
    seen: dict[str, dict[str, Compared]] = field(default_factory=dict)  # by type, then case
    _closed: set[str] = field(default_factory=set)  # types with a failure: no more counting

    def judge(self) -> Callable[[Candidate, Case], Verdict]:
        """The judge of one case."""
        return self._judge

    def _judge(self, new: Candidate, case: Case) -> Verdict:
        arrays, statics = new.given(case)
        gauged = new.expect(arrays, statics)
        theirs, before = _result(self.old.judged_in(case.type.name), arrays, statics, gauged)
        ours, verdict = _result(new, arrays, statics, gauged)
        if case.type.name not in self._closed:
            seen = self.seen.setdefault(case.type.name, {})
            seen.setdefault(key_of(case), _compared(ours, theirs, before))
        if before.error:
            return replace(before, message=f"{self.called} {before.message}")
        if verdict.ok:
            return verdict
        if before.ok:
            self._closed.add(case.type.name)
            message = (
                f"{self.called} is right here (ratio {before.ratio:.2g}), the new one is not: "
            )
            return replace(verdict, message=message + verdict.message)
        return Verdict(
            "-", notes=("both implementations are wrong in some cases: see the check value",)
        )

    def of_piece(self, dtype: str, cases) -> tuple[dict[str, Compared], bool]:
        """The comparisons on some cases, and whether a failure of the new one ended them."""
        seen = self.seen.get(dtype, {})
        return {key: seen[key] for key, _ in cases if key in seen}, dtype in self._closed

    def take(self, dtype: str, compared: Mapping[str, Compared], closed: bool) -> None:
        """Add the comparisons of a piece that another process judged."""
        self.seen[dtype] = {**compared, **self.seen.get(dtype, {})}
        self._closed |= {dtype} if closed else set()

    def open(self, dtype: str) -> None:
        """Start another piece: count its cases again."""
        self._closed.discard(dtype)

    def told(self, dtype: str) -> str:
        """One line that compares the two."""
        seen = [*self.seen.get(dtype, {}).values()]
        worst = max((c.ratio for c in seen if not c.failed), default=0.0)
        failed = sum(c.failed for c in seen)
        line = f"{self.called}: worst ratio {worst:.2g}"
        if failed:
            line += f" where it is right, wrong in {failed} of {len(seen)} cases"
        return f"{line}; all bits equal in {sum(c.equal for c in seen)} of {len(seen)}"


def _compared(ours, theirs, before: Verdict) -> Compared:
    equal = [np.array_equal(y, x, equal_nan=True) for y, x in zip(ours, theirs, strict=False)]
    return Compared(bool(equal) and all(equal), not before.ok, float(before.ratio))


def _result(candidate: Candidate, arrays, statics, gauged) -> tuple[tuple, Verdict]:
    """The outputs of one implementation and the verdict on them."""
    try:
        y = candidate.results(arrays, statics)
    except Broken as broken:
        return (), broken.verdict
    return y, candidate.graded(arrays, y, gauged)
