"""What a failure looks like: a planted bug that answers alike, or the pattern of the damage.

Every planted bug is itself an implementation: the judge asks which of them gives what was given, in
every call of the failing case and of further cases of the same check. Where none does, what the
wrong entries have in common is told: where they begin, a constant factor, the precision.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from refssm.conformance.cases.case import Case
from refssm.conformance.checks.candidate import Candidate
from refssm.conformance.checks.checks import Check
from refssm.conformance.diagnosis.pattern import shared_pattern
from refssm.conformance.diagnosis.suspects import answering_alike, misbehaving
from refssm.conformance.diagnosis.transcript import CASES, Episode, episodes
from refssm.conformance.judging.expected import remembering

FEW_BITS = ("float16", "tf32", "single")  # in the names of planted bugs
TOLD = 3  # that answer alike on everything heard


@dataclass(frozen=True)
class Diagnosis:
    """What a failure looks like, in words; `bugs` are the planted ones that answer alike."""

    text: str = ""
    bugs: tuple[str, ...] = ()

    @property
    def of_few_bits(self) -> bool:
        """Whether it is arithmetic of fewer bits than the type has."""
        named = any(word in bug for bug in self.bugs for word in FEW_BITS)
        return named or (not self.bugs and " bits" in self.text)


def diagnose(check: Check, candidate: Candidate, case: Case, strategy, seed: int) -> Diagnosis:
    """Name the mistake, or say what the damage has in common, or nothing."""
    with remembering(), _quiet():
        heard = episodes(check, candidate, case, strategy, seed)
        alike = answering_alike(check, candidate, heard)
        if len(alike) > 1 and len(heard) > 1:  # more cases tell them apart
            heard = episodes(check, candidate, case, strategy, seed, enough=CASES)
            alike = answering_alike(check, candidate, heard, among=alike)
        if not alike and check.strategy is None:
            alike = misbehaving(check, candidate, case, heard)
        return _told(check, candidate, heard, alike)


def diagnose_heard(check: Check, candidate: Candidate, heard: list[Episode]) -> Diagnosis:
    """The same of cases that have been answered already."""
    with _quiet():
        return _told(check, candidate, heard, answering_alike(check, candidate, heard))


@contextmanager
def _quiet():
    """Planted bugs overflow and cast as they please: that is no business of the reader's."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _told(check: Check, candidate: Candidate, heard: list[Episode], alike) -> Diagnosis:
    """The words, those of the nearest bug first."""
    if not alike:
        return Diagnosis(shared_pattern(check, candidate, heard))
    others = list(dict.fromkeys(d.what for d in alike))
    more = f" (or: {'; or: '.join(others[1:TOLD])})" if others[1:] else ""
    judged = sum(e.verdict.grade != "-" for e in heard)  # of the others nothing is known
    cases = f"{judged} of {judged} cases" if judged > 1 else "this case"
    bug = "each of these known bugs" if others[1:] else "this known bug"
    told = f"{others[0]}{more}: {bug}, put into the reference, gives the same outputs in {cases}"
    return Diagnosis(told, tuple(d.name for d in alike))
