"""Explain the failures of a check: smaller inputs, the likely cause, the convention."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from math import isfinite
from typing import NamedTuple

from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.calling.worker import NOT_CALLED
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.checks import VALUE, Check, value_of
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.checks.sweep import sweep, widest
from refssm.conformance.checks.swept import Failure, Swept
from refssm.conformance.diagnosis.convention import right_convention
from refssm.conformance.diagnosis.failure import explain
from refssm.conformance.diagnosis.hints import AS_WRONG, BY_CHUNK, FLUSHED
from refssm.conformance.diagnosis.looks_like import diagnose, values_beside
from refssm.conformance.diagnosis.shrinking import OTHER_TRIES, SHRINK_TRIES, Shrinking
from refssm.conformance.judging.result import SPREADS, THESE_BUGS, THIS_BUG, Also, Explained
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.number_types import number_type
from refssm.conformance.running.first_calls import Probe
from refssm.conformance.running.patience import OuterStop
from refssm.conformance.running.settings import Session

NOT_SMALLER = "not made smaller further, the {asked:g} s of --explain are over"
ALONE = "an ordinary call is wrong, too: the check of values says more"
NOT_COMPARED = "not compared with every known bug, the {asked:g} s of --explain are over"


class Known(NamedTuple):
    """The smallest case of a failure that was explained, for the same check in another type."""

    failure: tuple[str, str]
    case: Case

    def in_type(self, dtype: str) -> Case:
        """The case with the same sizes, knobs and seed."""
        kind = number_type(dtype)
        return replace(self.case, dtype=kind.carrier, half=kind if kind.half else None)


@dataclass
class Explaining:
    """The failures of one check of one implementation; `stop` ends it by the clock.

    `how` are the options of the check's search.
    """

    session: Session
    probe: Probe
    check: Check
    candidate: Candidate
    judge_case: Callable[[Case], Verdict]
    drawing: Drawing
    how: dict
    stop: OuterStop

    def failures(self, swept: Swept) -> tuple[Explained, tuple[Also, ...]] | tuple[()]:
        """The worst failure, and the others; nothing if no case of this check is to blame."""
        settings, (worst, *others) = self.session.settings, swept.failures
        assert worst.sample is not None
        if worst.verdict.message.startswith(NOT_CALLED):
            return ()
        if self.probe.scope.shrink:
            for failure in swept.failures:
                most = SHRINK_TRIES if failure is worst else OTHER_TRIES
                self._shrink(failure, swept.verdicts, most)
        smaller, self.stop.acted = self.stop.acted, False
        self.session.tick(f"{self.check.id}: explaining the failure", 0, 0)
        first = None
        if settings.evidence:
            seed = self.how["seed_"]
            first = widest(self.drawing, self.judge_case, worst.verdict, seed)
        shown = self.shown(worst, first, settings.hints)
        if shown.hint == FLUSHED:
            shown = replace(shown, hint=self._where_flushed())
        smaller, self.stop.acted = smaller or self.stop.acted, False
        shown = self._named(shown, worst, alone=not others)
        also = [self.shown(failure, None, hints=False).also(failure.verdict) for failure in others]
        cut = [NOT_SMALLER] * smaller + [NOT_COMPARED] * self.stop.acted
        told = (words.format(asked=settings.explain) for words in cut)
        swept.verdict = replace(swept.verdict, notes=(*swept.verdict.notes, *told))
        return shown, tuple(also)

    def _named(self, shown: Explained, worst: Failure, alone: bool) -> Explained:
        """The explanation with the likely cause; `alone`: the check fails in this way only."""
        settings, assumed = self.session.settings, worst.verdict.verdict == "inaccurate"
        inaccurate = assumed and shown.hint.endswith(AS_WRONG)
        assert worst.sample is not None
        case, seed = worst.sample.case, self.how["seed_"]
        of_values = isfinite(worst.verdict.ratio)
        if settings.diagnose and of_values and self._wrong_alone(case):
            return replace(shown, hint=ALONE)
        if (settings.diagnose or inaccurate) and not worst.verdict.died:
            looks_like = diagnose(
                self.check, self.candidate, case, self.drawing, seed, over=self.stop
            )
            told = (looks_like.text, self.convention()) if settings.diagnose else ("", "")
            shown = replace(shown, looks_like=told[0], convention=told[1])
            if looks_like.of_few_bits:  # it has few bits in a wider type too
                shown = replace(shown, hint=shown.hint.removesuffix(AS_WRONG))
        named = any(words in shown.looks_like for words in (THIS_BUG, THESE_BUGS))
        if shown.hint.endswith(BY_CHUNK) and alone and not named:
            shown = replace(shown, looks_like=SPREADS)
        if inaccurate and shown.hint.endswith(AS_WRONG):
            shown = replace(shown, as_wrong=True)
        return shown

    def _wrong_alone(self, case: Case) -> bool:
        """True if an ordinary call is wrong, and a case of `value`: no conduct is to blame."""
        check, candidate = self.check, self.candidate
        if check.strategy is not None or check.rule.between_calls or check.rule.of_gradient:
            return False
        with suppress(Declined):
            if not value_of(candidate, case).ok:
                beside = values_beside(check, candidate, self.how["seed_"])
                return any(not episode.verdict.ok for episode in beside)
        return False

    def convention(self) -> str:
        """The convention in which the function is right, looked for once in a run, or ""."""
        narrowed = self.session.settings.where.values  # its parameters would lie outside
        if self.probe.convention is None and self.check.rule is VALUE and not narrowed:
            self.session.tick(f"{self.check.id}: looking for its convention", 0, 0)
            seed = self.how["seed_"]
            found = right_convention(self.check, self.candidate, seed, over=self.stop)
            self.probe.convention = found
        return self.probe.convention or ""

    def _shrink(self, failure: Failure, verdicts: dict[str, Verdict | None], most: int) -> None:
        """Replace the case of a failure by a smaller one that fails in the same way."""
        assert failure.sample is not None
        shrinking = Shrinking(
            self.judge_case,
            failure.sample,
            failure.smallest,
            verdicts,
            self.session.settings.where.sizes,
            self._tried,
            self.stop,
            most,
        )
        explained, kind = self.probe.explained[self.check.name], failure.smallest.failure
        dtype = self.check.dtype
        shrinking.shrink([known.in_type(dtype) for known in explained if known.failure == kind])
        failure.sample, failure.smallest = shrinking.sample, shrinking.verdict
        explained.append(Known(kind, failure.sample.case))

    def _tried(self, tries: int) -> None:
        """Show that one more simpler case was tried."""
        self.session.tick(f"{self.check.id}: making the case smaller", tries, SHRINK_TRIES)

    def shown(self, failure: Failure, first: Verdict | None, hints: bool, shrink=True) -> Explained:
        """One failure: its smallest case, and where that is saved."""
        assert failure.sample is not None
        settings = self.session.settings
        shown = explain(
            self.check,
            self.candidate,
            failure.sample.case,
            failure.smallest,
            accepted=self.probe.accepted,
            shrink=shrink and self.probe.scope.shrink,
            folder=settings.folder,
            hints=hints,
            call=self.session.call,
            first=first,
            over=self.stop,
        )
        return replace(shown, kind=failure.verdict.failure[1], failing=failure.cases)

    def _where_flushed(self) -> str:
        """The hint to declare ftz, or what still fails with that declaration."""
        assert self.candidate.standard is not None
        forgiving = copy(self.candidate)
        forgiving.standard = replace(self.candidate.standard, ftz=True)
        how = {**self.how, "several": False, "tick": lambda: None}
        again = sweep(self.drawing, self.check.judging(forgiving), **how)
        if not again.failures:
            return FLUSHED
        return f"also wrong if subnormal numbers may be flushed to zero: {again.verdict.message}"
