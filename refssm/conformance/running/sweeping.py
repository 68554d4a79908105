"""Run one check of one implementation: draw cases, judge them, explain a failure; the result."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from refssm.conformance.calling.candidate import Candidate, without_result
from refssm.conformance.cases.case import Case, ordinary_cases
from refssm.conformance.cases.sampling import Sample
from refssm.conformance.checks.checks import COMPARING, VALUE, Check
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.checks.piece import key_of
from refssm.conformance.checks.sweep import MORE, sweep
from refssm.conformance.checks.swept import Failure, Swept
from refssm.conformance.judging.expected import remembering
from refssm.conformance.judging.result import MISFIT, THIN, Also, Explained, Result
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.running.explaining import Explaining
from refssm.conformance.running.first_calls import BLOCK_SIZES, FirstCall, Probe
from refssm.conformance.running.own_faults import HINT, KIND, guarded
from refssm.conformance.running.patience import UNLIMITED, OuterStop
from refssm.conformance.running.scope import Scope
from refssm.conformance.running.settings import Session
from refssm.conformance.standard import Standard

UNFIT = "no other check was run: none can pass before the layout fits"
RAISES = "no other check was run: the call raises in every type, perhaps for a wrong layout"
CUT = "ended after {} of {} cases: its share of the {:g} s of --time was over"
AGAIN = 1  # where the same check fails in another type: the search ends with the piece
ONCE = "the same call is right when it is made again: what is different in the first call?"
SEVERAL = 5  # so many cases have more than one length, unless the implementation limits them


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
                notes=(*verdict.notes, *_left_out(self.scope.op.name, offer.untaken)),
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
            unjudged=self.scope.offer.unjudged,
        )

    def fault(self, check: Check, told: str) -> Result:
        """The result of a check in which refssm itself failed; `told` says how."""
        return replace(self.result(check, "error", told), kind=KIND, hint=HINT)

    def skipped(self, check: str, dtype: str, reason: str) -> Result:
        """The result of a check that was not started."""
        op, function = self.scope.op.name, self.scope.settings.function
        return Result(op, self.target, check, dtype, "skipped", message=reason, function=function)


def _left_out(name: str, keywords: tuple[str, ...]) -> list[str]:
    """The note on keywords of the operator that the function does not take."""
    told = ", ".join(f"`{keyword}`" for keyword in keywords)
    return [f"{name} is judged without {told}, which the function does not take"] * bool(told)


@dataclass
class Sweeping:
    """One check, from its first case to its line of the report."""

    session: Session
    probe: Probe
    wording: Wording
    check: Check
    seconds: float = UNLIMITED  # after so many, no other case begins

    def __post_init__(self):
        self.scope, self.size_ranges = self.probe.scope, self.session.settings.where.sizes
        self.candidate = self.probe.candidate.judged_in(self.check.dtype)
        self.candidate.accepted = self.probe.accepted
        self.judge_case = self.check.judging(self.candidate)
        self.options = {
            "count": self.check.count,
            "seed_": first_seed(self.check, self.session.settings.seed),
            "several": self.scope.shrink,
            "tick": self._judged_one,
            "more": AGAIN if self.probe.explained[self.check.name] else MORE,
            "over": OuterStop(self.seconds),
        }
        self.candidate.late = self.options["over"]
        self.done = 0  # cases
        self.cases_in_all = self.check.count + len(self._cases().published)

    def result(self) -> Result:
        """Judge the cases and return the result."""
        check, started = self.check, time.perf_counter()
        self.session.tick(check.id, 0, self.cases_in_all)
        with remembering():  # a failing case is judged again while it is explained
            return self._result(started)

    def _result(self, started: float) -> Result:
        check, swept = self.check, self._judged_cases()
        first = self.probe.wrong_first(self.candidate) if check.rule is VALUE else None
        if first and not swept.failures:
            return self._of_wrong_first(*first, started, (swept.examples, swept.declined))
        older = self.probe.older
        hint = older.told(check.id, swept.keys) if check.rule in COMPARING and older else ""
        if not swept.failures and swept.declined == swept.examples:
            swept.verdict = Verdict("-", notes=("declined all cases",))
        if swept.cut and swept.examples < self.cases_in_all:
            told = CUT.format(swept.examples, self.cases_in_all, self.session.clock.seconds)
            swept.verdict = replace(swept.verdict, notes=(*swept.verdict.notes, told))
        explained: tuple = ()
        if swept.failures:
            explained = guarded(lambda: self._explained(swept), partial(_unexplained, swept))
        counts = swept.examples, swept.declined
        result = self.wording.judged(check, swept.verdict, started, *counts, hint)
        if swept.failures:
            return result.explained(*explained) if explained else result
        if swept.verdict.grade == "-":
            return result
        return self._thin(swept, replace(result, reached=self._reached(swept)))

    def _reached(self, swept: Swept) -> dict[str, int]:
        """The largest size of each dimension; none where `only` may have changed the cases."""
        reached: dict[str, int] = {}
        if self.check.strategy is None or self.scope.offer.narrows:
            return reached
        for case in self._cases().all_cases(self.check.count, self.options["seed_"]):
            if swept.verdicts.get(key_of(case)) is not None:
                for dim, size in (*case.sizes.items(), *case.batch.items()):
                    reached[dim] = max(size, reached.get(dim, 0))
        return reached

    def _of_wrong_first(self, first: FirstCall, verdict: Verdict, started, counts) -> Result:
        """The result of a first call with wrong outputs, where those of all cases are right."""
        explaining = self._explaining()
        shown = explaining.shown(_failure(first.case, verdict), None, hints=False, shrink=False)
        again = self.judge_case(first.case)
        shown = replace(shown, hint=ONCE if again.ok else "")
        result = self.wording.judged(self.check, verdict, started, *counts).explained(shown)
        return replace(result, shrunk=False)

    def of_first_call(self, first: FirstCall) -> Result:
        """The result of a first call that is a failure; the check draws no other case."""
        started, verdict = time.perf_counter(), without_result(first.outcome)
        swept = Swept(examples=1, verdict=verdict, failures=[_failure(first.case, verdict)])
        explained = guarded(lambda: self._explained(swept), partial(_unexplained, swept))
        result = self.wording.judged(self.check, swept.verdict, started)
        result = result.explained(*explained) if explained else result
        if first.killed:
            return result
        return replace(result, message=f"declared for {self.check.dtype}, but {result.message}")

    def of_misfit(self, first: FirstCall) -> Result:
        """The result of a first call that the declared layout does not fit; no case is drawn."""
        started, outcome = time.perf_counter(), first.outcome
        verdict = without_result(replace(outcome, message=self.probe.misfit))
        explaining = self._explaining()
        shown = explaining.shown(_failure(first.case, verdict), None, hints=False, shrink=False)
        shown = replace(shown, kind=MISFIT, hint=UNFIT if outcome.misfit else RAISES)
        if self.session.settings.diagnose and not first.killed:
            shown = replace(shown, convention=explaining.convention())
        result = self.wording.judged(self.check, verdict, started).explained(shown)
        return replace(result, shrunk=False)

    def _judged_cases(self) -> Swept:
        """Judge all cases of the check.

        If the check has one ordinary case and that is declined, try cases with sizes that are
        multiples of usual block sizes, because some implementations accept no others, and with
        other parameters.
        """
        check = self.check
        with self.session.source.of(check, self.probe.older) as (judged_elsewhere, keep):
            swept = sweep(
                self._cases(),
                self.judge_case,
                redraw=check.strategy is not None,
                ready=judged_elsewhere,
                keep=keep,
                **self.options,
            )
        if check.strategy is None and swept.declined:
            op, within = self.scope.op, self.size_ranges
            for case in ordinary_cases(op, check.dtype, BLOCK_SIZES, within):
                swept = sweep(
                    Drawing(lambda draw, case=case: case), self.judge_case, **self.options
                )
                if not swept.declined:
                    break
        return swept

    def _cases(self):
        preset = self.session.settings.preset
        return self.check.cases(mixed=self.probe.mixed, between=self.size_ranges, preset=preset)

    def _judged_one(self) -> None:
        """Show that one more case was judged."""
        self.done += 1
        self.session.tick(self.check.id, self.done, self.cases_in_all)

    def _thin(self, swept: Swept, result: Result) -> Result:
        """The result, thin if it passes in too few cases."""
        op, declined = self.scope.op, f"{swept.declined} of {swept.examples} draws were declined"
        low, high = self.size_ranges.get(op.leading, (0, np.inf))
        size, where = "", "--where"
        limited = 2 * swept.declined > swept.examples or self.scope.offer.narrows
        if limited and len(swept.lengths) == 1 and swept.judged >= SEVERAL and low < high:
            length = min(swept.lengths)
            size, where = f"{op.leading}={length}", f"--where {op.leading}={length}..{length}"
        if swept.declined == 0:
            declined = "`only` changes every case so"
        if swept.few:
            few = f"only {swept.judged} of {swept.wanted} cases could be judged"
            message = f"{few}{f', all with {size}' if size else ''}: {declined}"
        elif size:
            message = f"all cases that could be judged have {size}: {declined}"
        else:
            return result
        hint = f"accept more cases, or limit what is drawn with {where}; --allow-thin accepts this"
        thin = replace(
            result,
            verdict=THIN,
            message=message,
            hint=result.hint or hint,
            tolerated=self.session.settings.allow_thin,
        )
        if swept.verdict.grade != "N":
            return thin
        in_norm = f"right in norm: {swept.verdict.message}"
        return replace(thin, notes=(in_norm, *swept.verdict.notes))

    def _explaining(self) -> Explaining:
        """What explains its failures, for as long as the run allows."""
        seconds = min(self.session.settings.explain, self.session.clock.of_explanation)
        how = {key: self.options[key] for key in ("count", "seed_", "several", "tick")}
        of = self.session, self.probe, self.check, self.candidate, self.judge_case
        return Explaining(*of, self._cases(), how, OuterStop(seconds))

    def _explained(self, swept: Swept) -> tuple[Explained, tuple[Also, ...]] | tuple[()]:
        """The worst failure, and the others; nothing if no case of this check is to blame."""
        return self._explaining().failures(swept)


def _failure(case: Case, verdict: Verdict) -> Failure:
    """The failure of a case that no sampler drew."""
    return Failure(0, "", verdict, verdict, sample=Sample(case))


def _unexplained(swept: Swept, fault: str) -> tuple[()]:
    """No explanation, and a note why: the failure itself is judged, and stays."""
    notes = *swept.verdict.notes, f"while the failure was explained: {fault}"
    swept.verdict = replace(swept.verdict, notes=notes)
    return ()


def first_seed(check: Check, seed: int) -> int:
    """The seed of a check's first cases in a run with `seed`."""
    return zlib.crc32(check.id.encode()) ^ seed
