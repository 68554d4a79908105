"""`--against old.py`: judge a new and an old implementation on the same cases."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.cotangents import cotangents_of
from refssm.conformance.checks.piece import ComparedCase, key_of
from refssm.conformance.judging.verdict import Verdict


@dataclass
class Beside:
    """Judges both on each case; the new one fails where it is wrong and the old one is right."""

    old: Candidate
    called: str  # the old one's name in reports
    seen: dict[str, dict[str, ComparedCase]] = field(default_factory=dict)  # by check, then case

    def judge(self, id: str, gradients: bool) -> Callable[[Candidate, Case], Verdict]:
        """The judge of one case of a check, of values or of gradients."""
        return lambda new, case: self._judge(new, case, id, gradients)

    def _judge(self, new: Candidate, case: Case, id: str, gradients: bool) -> Verdict:
        arrays, statics = new.given(case)
        old = self.old.judged_in(case.type.name)
        if gradients:
            cotangents, view = cotangents_of(case, arrays, statics, new.offer.views)
            given = cotangents, arrays, statics
            theirs, before = _gradients(old, given, view if view in old.offer.views else "")
            ours, verdict = _gradients(new, given, view)
        else:
            gauged = new.grader.expect(arrays, statics)
            theirs, before = _result(old, arrays, statics, gauged)
            ours, verdict = _result(new, arrays, statics, gauged)
        seen = self.seen.setdefault(id, {})
        seen.setdefault(key_of(case), _compared(ours, theirs, before))
        if before.error:
            kind = f"{before.failure[1]} in {self.called}"
            return replace(before, message=f"{self.called} {before.message}", kind=kind)
        if verdict.ok:
            return verdict
        if before.ok:
            message = (
                f"{self.called} is right here (ratio {before.ratio:.2g}), the new one is not: "
            )
            kind = verdict.failure[1]  # without it, that of an error is read from the message
            return replace(verdict, message=message + verdict.message, kind=kind)
        return Verdict(
            "-",
            notes=(
                "both implementations are wrong in some cases: see the check "
                + ("gradient" if gradients else "value"),
            ),
        )

    def of_piece(self, id: str, cases) -> dict[str, ComparedCase]:
        """The comparisons on some cases."""
        seen = self.seen.get(id, {})
        return {key: seen[key] for key, _ in cases if key in seen}

    def take(self, id: str, compared: Mapping[str, ComparedCase]) -> None:
        """Add the comparisons of a piece that another process judged."""
        self.seen[id] = {**compared, **self.seen.get(id, {})}

    def told(self, id: str, drawn: Collection[str]) -> str:
        """One line that compares the two on the cases with these keys; no smaller ones count."""
        seen = [c for key, c in self.seen.get(id, {}).items() if key in drawn]
        worst = max((c.ratio for c in seen if not c.failed), default=0.0)
        failed = sum(c.failed for c in seen)
        line = f"{self.called}: worst ratio {worst:.2g}"
        if failed:
            line += f" where it is right, wrong in {failed} of {len(seen)} cases"
        return f"{line}; all bits equal in {sum(c.equal for c in seen)} of {len(seen)}"


def _compared(ours, theirs, before: Verdict) -> ComparedCase:
    equal = [np.array_equal(y, x, equal_nan=True) for y, x in zip(ours, theirs, strict=False)]
    return ComparedCase(bool(equal) and all(equal), not before.ok, float(before.ratio))


def _result(candidate: Candidate, arrays, statics, gauged) -> tuple[tuple, Verdict]:
    """The outputs of one implementation and the verdict on them."""
    try:
        y = candidate.results(arrays, statics)
    except Broken as broken:
        return (), broken.verdict
    return y, candidate.grader.outputs(arrays, y, gauged)


def _gradients(candidate: Candidate, given, view: str) -> tuple[tuple, Verdict]:
    """The gradients of one implementation and the verdict on them."""
    cotangents, arrays, statics = given
    try:
        gradients = candidate.outputs([*cotangents, *arrays], statics, vjp=True, view=view)
    except Broken as broken:
        return (), broken.verdict
    return gradients, candidate.grader.gradients(gradients, cotangents, arrays, statics)
