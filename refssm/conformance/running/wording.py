"""Turn a verdict into a result, one line of the report."""

from __future__ import annotations

import time
from dataclasses import dataclass

from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.checks.checks import Check
from refssm.conformance.judging.result import Result
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.running.scope import Scope
from refssm.conformance.standard import Standard


@dataclass(frozen=True)
class Wording:
    """Makes the results of one implementation; `target` is where it was found."""

    target: str
    scope: Scope
    candidate: Candidate

    def judged(self, check: Check, verdict: Verdict, started: float, details: dict) -> Result:
        """The result of a check with a verdict; `details` are further fields."""
        offer = self.scope.offer
        fields = {
            "grade": "-" if verdict.error else verdict.grade,
            "ratio": verdict.ratio,
            "bits": verdict.bits,
            "message": verdict.message,
            "seconds": time.perf_counter() - started,
            "notes": verdict.notes,
            "sliced": self.candidate.sliced or offer.loops,
            "allowed": offer.accuracy.C,
            "digits": Standard.of(check.dtype, offer.accuracy).computes.digits,
        }
        return self.result(check, **({"verdict": verdict.verdict} | fields | details))

    def not_judged(self, check: Check, verdict: Verdict, started: float, details: dict) -> Result:
        """The result of a check in which no case could be judged."""
        message = "; ".join(verdict.notes) or "nothing could be judged"
        seconds = time.perf_counter() - started
        return self.result(check, "skipped", message=message, seconds=seconds, **details)

    def result(self, check: Check, verdict: str, **details) -> Result:
        """A result with the fields that all results share."""
        settings = self.scope.settings
        fields = {"seed": settings.seed, "profile": settings.profile, "shrunk": self.scope.shrink}
        fields |= {"function": settings.function}
        return Result(
            check.op.name, self.target, check.name, check.dtype, verdict, **(fields | details)
        )

    def skipped(self, check: str, dtype: str, reason: str) -> Result:
        """The result of a check that was not started."""
        op, function = self.scope.op.name, self.scope.settings.function
        return Result(op, self.target, check, dtype, "skipped", message=reason, function=function)
