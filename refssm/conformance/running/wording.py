"""Turn a verdict into a result, one line of the report."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

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

    def judged(
        self, check: Check, verdict: Verdict, started: float, examples=1, declined=0, hint=""
    ) -> Result:
        """The result of a check with a verdict; it is skipped if nothing could be judged."""
        offer = self.scope.offer
        if verdict.grade == "-" and not verdict.error:
            message = "; ".join(verdict.notes) or "nothing could be judged"
            result = self.result(check, "skipped", message)
        else:
            result = replace(
                self.result(check, verdict.verdict, verdict.message),
                grade="-" if verdict.error else verdict.grade,
                ratio=verdict.ratio,
                bits=verdict.bits,
                notes=verdict.notes,
                sliced=self.candidate.sliced or offer.loops,
                allowed=offer.accuracy.C,
                digits=Standard.of(check.dtype, offer.accuracy).computes.digits,
            )
        seconds = time.perf_counter() - started
        return replace(result, seconds=seconds, examples=examples, declined=declined, hint=hint)

    def result(self, check: Check, verdict: str, message: str) -> Result:
        """A result with the fields that all results share."""
        settings = self.scope.settings
        return Result(
            check.op.name,
            self.target,
            check.name,
            check.dtype,
            verdict,
            message=message,
            seed=settings.seed,
            profile=settings.profile,
            shrunk=self.scope.shrink,
            function=settings.function,
        )

    def skipped(self, check: str, dtype: str, reason: str) -> Result:
        """The result of a check that was not started."""
        op, function = self.scope.op.name, self.scope.settings.function
        return Result(op, self.target, check, dtype, "skipped", message=reason, function=function)
