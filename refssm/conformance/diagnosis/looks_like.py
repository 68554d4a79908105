"""The likely cause of a failure: a planted bug with the same outputs, or a pattern of errors.

Every planted bug is itself an implementation. The judge looks for bugs that give the same outputs
as the failed implementation, in every call of the failing case and of further cases of the check.
Outputs that are one basis of many are compared in that basis. If there is no such bug, it describes
what the wrong entries have in common: where they start, a constant factor, or the precision.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from refssm._declaration.arguments import several
from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.one_call import InProcess
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.diagnosis.constants import clamped, with_epsilon
from refssm.conformance.diagnosis.pattern import shared_pattern
from refssm.conformance.diagnosis.suspects import (
    answering_alike,
    bugs_in,
    misbehaving,
    outcome_of,
    where_finite,
)
from refssm.conformance.diagnosis.transcript import (
    CASES,
    Episode,
    SpokenCall,
    episodes,
    expected,
    graded,
    overflowed,
    refused,
)
from refssm.conformance.judging.expected import remembering
from refssm.conformance.judging.result import SO_CHANGED, THESE_BUGS, THIS_BUG
from refssm.conformance.planted import PlantedBug
from refssm.conformance.standard import C

FEW_BITS = ("float16", "tf32", "single")  # words in names of planted bugs
TOLD = 3  # the largest number of bugs to name


@dataclass(frozen=True)
class LooksLike:
    """The likely cause in words; `bugs` are the planted bugs with the same outputs."""

    text: str = ""
    bugs: tuple[str, ...] = ()

    @property
    def of_few_bits(self) -> bool:
        """True if the cause is arithmetic with fewer bits than the type."""
        named = any(word in bug for bug in self.bugs for word in FEW_BITS)
        return named or (not self.bugs and " bits" in self.text)


def diagnose(
    check: Check, candidate: Candidate, case: Case, drawing: Drawing, seed: int
) -> LooksLike:
    """The planted bugs with the same outputs, else a pattern of the errors, else nothing."""
    with remembering(), _quiet():
        heard = episodes(check, candidate, case, drawing, seed)
        alike = answering_alike(check, candidate, heard)
        if len(alike) > 1 and len(heard) > 1:  # more cases, to tell them apart
            heard = episodes(check, candidate, case, drawing, seed, enough=CASES)
            alike = answering_alike(check, candidate, heard, among=alike)
        if not alike and (finite := _alike_where_finite(check, candidate, heard)):
            return _told(check, candidate, heard, finite, "the same finite outputs")
        if not alike and check.strategy is None:
            alike = misbehaving(check, candidate, case, heard)
        alike = alike or with_epsilon(candidate, heard)
        if not alike and (again := in_their_basis(check, candidate, heard)):
            return _told_of_basis(again, heard)
        if not alike and (limits := clamped(check, candidate, heard)):
            return _told(check, candidate, heard, limits, found=SO_CHANGED)
        return _told(check, candidate, heard, alike)


def _alike_where_finite(check: Check, candidate: Candidate, heard: list[Episode]):
    """The planted bugs that overflow, too, and give the same outputs where neither did."""
    if not any(map(overflowed, heard)):
        return []
    return answering_alike(check, candidate, heard, where=where_finite)


def diagnose_heard(check: Check, candidate: Candidate, heard: list[Episode]) -> LooksLike:
    """As `diagnose`, for calls that were already recorded."""
    with _quiet():
        return _told(check, candidate, heard, answering_alike(check, candidate, heard))


@contextmanager
def _quiet():
    """Silence warnings: planted bugs overflow and cast, which does not concern the user."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _told(
    check, candidate, heard: list[Episode], alike, same="the same outputs", found=""
) -> LooksLike:
    """The diagnosis in words; the nearest bug comes first."""
    if not alike:
        return LooksLike(shared_pattern(check, candidate, heard))
    judged = sum(e.verdict.grade != "-" for e in heard)  # cases not judged show nothing
    cases = f"{judged} of {judged} cases" if judged > 1 else "this case"
    several = len({d.what for d in alike}) > 1
    found = found or (THESE_BUGS if several else THIS_BUG) + " into the reference,"
    told = f"{_names(alike)}{found} gives {same} in {cases}"
    return LooksLike(told, tuple(d.name for d in alike))


def _names(bugs: list[PlantedBug]) -> str:
    """What a few bugs do, the likeliest first."""
    first, *others = dict.fromkeys(d.what for d in bugs)
    return first + (f" (or: {'; or: '.join(others[: TOLD - 1])})" if others else "")


def _told_of_basis(bugs: list[PlantedBug], heard: list[Episode]) -> LooksLike:
    """The diagnosis of outputs in another basis than the reference's."""
    failing = sum(not e.verdict.ok for e in heard)
    told = f"{_names(bugs)}: put into the right outputs in their basis, it gives these in"
    return LooksLike(f"{told} {failing} of {failing} failing cases", tuple(d.name for d in bugs))


def in_their_basis(check: Check, candidate: Candidate, heard: list[Episode]) -> list[PlantedBug]:
    """The planted bugs that give all refused outputs in the basis of these, one of many.

    In another basis a bug gives other outputs. Either the vectors are right and show the basis, or
    the bug undoes itself: what is transposed, conjugated or reversed twice is right in every basis;
    columns that moved on are in place after one round of all.
    """
    if not candidate.op.contract.basis_free or check.rule.of_gradient:
        return []
    calls = [call for e in heard for call in e.calls if refused(candidate, call, call.outcome)]
    if not calls or any(call.vjp or call.outcome.status != "ok" for call in calls):
        return []
    return [d for d in bugs_in(candidate.op) if not d.vjp and _in_their_basis(d, candidate, calls)]


def _in_their_basis(d: PlantedBug, candidate: Candidate, calls: list[SpokenCall]) -> bool:
    """True if the bug is refused in every call, and gives these outputs in their basis."""
    worker = InProcess([d.found()])
    owns = ((call, outcome_of(worker, d.op, call, call.arguments, candidate)) for call in calls)
    if not all(refused(candidate, call, own) for call, own in owns):
        return False
    return any(
        all(_right_after(d, candidate, call, times(call.outcome.outputs)) for call in calls)
        for times in (lambda outputs: 1, lambda outputs: max(1, outputs[-1].shape[-1] - 1))
    ) or all(_same_in_their_basis(d, candidate, call) for call in calls)


def _same_in_their_basis(d: PlantedBug, candidate: Candidate, call: SpokenCall) -> bool:
    """True if the bug, put into the right modes in the order and with the phases of their vectors,
    gives these outputs.

    Outputs are the modes w, what is rotated by Vᴴ, and V; of each column of theirs, the right one
    is that with the largest projection.
    """
    theirs = call.outcome.outputs
    double = {"f": np.float64, "c": np.complex128}
    values = (g.value for g in expected(candidate, call))
    *modes, V = (y.astype(double[y.dtype.kind]) for y in values)
    if not modes:
        return False
    if V.ndim != 2 or theirs[-1].shape != V.shape or not np.isfinite(theirs[-1]).all():
        return False
    G = V.conj().T @ theirs[-1]
    i = np.argmax(np.abs(G), axis=0)
    size = np.abs(G[i, np.arange(len(i))])
    if len(set(i.tolist())) < len(i) or not size.all():
        return False
    phase = G[i, np.arange(len(i))] / size
    turned = [(x[i].T * phase.conj()).T for x in modes[1:]]
    right = (modes[0][i], *turned, V[:, i] * phase)
    try:
        outputs = several(d.wrong(lambda *_, **__: right, **call.statics))
    except Exception:  # it does not fit these outputs
        return False
    alike = len(outputs) == len(theirs) and all(map(_near, theirs, outputs))
    return alike and not all(map(_near, right, outputs))  # else it changes nothing here


def _near(y, wanted) -> bool:
    """True if the arrays have one type, and are equal up to the roundings of an eigensolver."""
    if np.shape(y) != np.shape(wanted) or y.dtype != wanted.dtype:
        return False
    size = np.abs(wanted).max(initial=0)
    return bool(np.abs(y - wanted).max(initial=0) <= C * len(y) * np.finfo(y.dtype).eps * size)


def _right_after(d: PlantedBug, candidate: Candidate, call: SpokenCall, times: int) -> bool:
    """True if the outputs are right after the bug was put into them so many times."""
    outputs = call.outcome.outputs
    shapes = [np.shape(y) for y in outputs]
    for _ in range(times):
        try:
            outputs = several(d.wrong(lambda outputs=outputs, **_: outputs, **call.statics))
        except Exception:  # it does not fit these outputs
            return False
    same = [np.shape(y) for y in outputs] == shapes
    return same and graded(candidate, call, outputs, expected(candidate, call)).ok
