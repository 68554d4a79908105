"""Run one check of one implementation: draw cases, judge them, explain a failure."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from refssm.conformance.calling.worker import NOT_CALLED
from refssm.conformance.cases.case import Case, ordinary_case
from refssm.conformance.checks.candidate import FirstCall
from refssm.conformance.checks.checks import AGAINST, Check
from refssm.conformance.checks.sweep import SHRINK_TRIES, Swept, process_died, sweep, widest
from refssm.conformance.diagnosis.failure import explain
from refssm.conformance.diagnosis.hints import AS_WRONG, FLUSHED
from refssm.conformance.diagnosis.looks_like import diagnose
from refssm.conformance.judging.result import Result
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.running.probing import BLOCK_SIZES, Probe
from refssm.conformance.running.settings import Session
from refssm.conformance.running.wording import Wording


@dataclass
class Sweeping:
    """One check, from its first case to its line of the report."""

    session: Session
    probe: Probe
    wording: Wording
    check: Check

    def __post_init__(self):
        self.scope, self.size_ranges = self.probe.scope, self.session.settings.where.sizes
        self.candidate = self.probe.candidate.judged_in(self.check.dtype)
        self.judge_case = self.check.judging(self.candidate)
        self.options = {
            "count": self.check.count,
            "seed_": first_seed(self.check, self.session.settings.seed),
            "shrink": self.scope.shrink,
            "tick": self._progress(),
        }

    def result(self) -> Result:
        """Judge the cases and return the result."""
        check, started = self.check, time.perf_counter()
        self.session.tick(check.id, 0, check.count)
        swept = self._judged_cases()
        details: dict = {"examples": swept.examples, "declined": swept.declined}
        if check.rule is AGAINST and self.probe.older:
            details["hint"] = self.probe.older.told(check.dtype)
        if swept.case is not None:
            self.session.tick(f"{check.id}: explaining the failure", 0, 0)
            details = self._explained(swept, swept.case) | details
        elif swept.verdict.grade == "-":
            if swept.declined == swept.examples:
                declined = f"declined all {swept.declined} cases"
                swept.verdict = Verdict("-", notes=(declined,))
            return self.wording.not_judged(check, swept.verdict, started, details)
        return self.wording.judged(check, swept.verdict, started, details)

    def of_first_call(self, first: FirstCall) -> Result:
        """The result of a first call that is a failure; the check draws no other case."""
        started, message = time.perf_counter(), first.outcome.message
        verdict = Verdict("F", np.inf, 0.0, message, error=True)
        swept = Swept(examples=1, verdict=verdict, case=first.case, first=verdict)
        details = {"examples": 1} | self._explained(swept, first.case)
        if not first.killed:
            details["message"] = f"declared for {self.check.dtype}, but {details['message']}"
        return self.wording.judged(self.check, verdict, started, details)

    def _judged_cases(self) -> Swept:
        """Judge all cases of the check.

        If the check has one ordinary case and that is declined, try a case with sizes that are
        multiples of usual block sizes, because some implementations accept no others.
        """
        check = self.check
        with self.session.source.of(check, self.probe.older) as (judged_elsewhere, keep):
            swept = sweep(
                self._cases(), self.judge_case, ready=judged_elsewhere, keep=keep, **self.options
            )
        if check.strategy is None and swept.declined:
            case = ordinary_case(self.scope.op, check.dtype, BLOCK_SIZES, between=self.size_ranges)
            swept = sweep(st.just(case), self.judge_case, **self.options)
        return swept

    def _cases(self):
        return self.check.cases(mixed=self.probe.mixed, between=self.size_ranges)

    def _progress(self) -> Callable[[int], None]:
        """The callback for each case, and for each try of shrinking."""
        done, check, session = [0], self.check, self.session

        def tick(tries: int) -> None:
            done[0] += not tries
            if tries:
                session.tick(f"{check.id}: making the case smaller", tries, SHRINK_TRIES)
            else:
                session.tick(check.id, done[0], check.count)

        return tick

    def _explained(self, swept: Swept, case: Case) -> dict:
        """The fields of a failed result."""
        check, candidate, settings = self.check, self.candidate, self.session.settings
        if swept.verdict.message.startswith(NOT_CALLED):  # no case of this check is to blame
            return {}
        more = {"accepted": self.probe.accepted, "shrink": self.scope.shrink}
        more |= {"folder": settings.folder, "hints": settings.hints, "call": self.session.call}
        if settings.evidence and swept.first is not None:
            more["first"] = widest(
                self._cases(), self.judge_case, swept.first, self.options["seed_"]
            )
        fields = explain(check, candidate, case, swept.verdict, **more)
        if fields["hint"] == FLUSHED:
            fields["hint"] = self._where_flushed()
        if settings.diagnose and not process_died(swept.verdict):
            looks_like = diagnose(check, candidate, case, self._cases(), self.options["seed_"])
            fields["looks_like"] = looks_like.text
            if looks_like.of_few_bits:  # it has few bits in a wider type too
                fields["hint"] = fields["hint"].removesuffix(AS_WRONG)
        return fields

    def _where_flushed(self) -> str:
        """The hint to declare ftz, or what still fails with that declaration."""
        assert self.candidate.held is not None
        forgiving = copy(self.candidate)
        forgiving.held = replace(self.candidate.held, ftz=True)
        how = {**self.options, "shrink": False, "tick": lambda tries: None}
        again = sweep(self._cases(), self.check.judging(forgiving), **how)
        if again.case is None:
            return FLUSHED
        return f"also wrong if subnormal numbers may be flushed to zero: {again.verdict.message}"


def first_seed(check: Check, seed: int) -> int:
    """The seed of a check's first cases in a run with `seed`."""
    return zlib.crc32(check.id.encode()) ^ seed
