"""The likely cause of a failure: a planted bug with the same outputs, or a pattern of errors.

Every planted bug is itself an implementation. The judge looks for bugs that give the same outputs
as the failed implementation, in every call of the failing case and of further cases of the check.
If there is none, it describes what the wrong entries have in common: where they start, a constant
factor, or the precision.
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
from refssm.conformance.judging.result import THESE_BUGS, THIS_BUG

FEW_BITS = ("float16", "tf32", "single")  # words in names of planted bugs
TOLD = 3  # the largest number of bugs to name


@dataclass(frozen=True)
class Diagnosis:
    """The likely cause in words; `bugs` are the planted bugs with the same outputs."""

    text: str = ""
    bugs: tuple[str, ...] = ()

    @property
    def of_few_bits(self) -> bool:
        """True if the cause is arithmetic with fewer bits than the type."""
        named = any(word in bug for bug in self.bugs for word in FEW_BITS)
        return named or (not self.bugs and " bits" in self.text)


def diagnose(check: Check, candidate: Candidate, case: Case, strategy, seed: int) -> Diagnosis:
    """The planted bugs with the same outputs, else a pattern of the errors, else nothing."""
    with remembering(), _quiet():
        heard = episodes(check, candidate, case, strategy, seed)
        alike = answering_alike(check, candidate, heard)
        if len(alike) > 1 and len(heard) > 1:  # more cases, to tell them apart
            heard = episodes(check, candidate, case, strategy, seed, enough=CASES)
            alike = answering_alike(check, candidate, heard, among=alike)
        if not alike and check.strategy is None:
            alike = misbehaving(check, candidate, case, heard)
        return _told(check, candidate, heard, alike)


def diagnose_heard(check: Check, candidate: Candidate, heard: list[Episode]) -> Diagnosis:
    """As `diagnose`, for calls that were already recorded."""
    with _quiet():
        return _told(check, candidate, heard, answering_alike(check, candidate, heard))


@contextmanager
def _quiet():
    """Silence warnings: planted bugs overflow and cast, which does not concern the user."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _told(check: Check, candidate: Candidate, heard: list[Episode], alike) -> Diagnosis:
    """The diagnosis in words; the nearest bug comes first."""
    if not alike:
        return Diagnosis(shared_pattern(check, candidate, heard))
    others = list(dict.fromkeys(d.what for d in alike))
    more = f" (or: {'; or: '.join(others[1:TOLD])})" if others[1:] else ""
    judged = sum(e.verdict.grade != "-" for e in heard)  # cases not judged show nothing
    cases = f"{judged} of {judged} cases" if judged > 1 else "this case"
    found = THESE_BUGS if others[1:] else THIS_BUG
    told = f"{others[0]}{more}{found} into the reference, gives the same outputs in {cases}"
    return Diagnosis(told, tuple(d.name for d in alike))
