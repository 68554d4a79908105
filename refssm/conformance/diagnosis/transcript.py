"""Record the calls of an implementation during a check, and their outcomes; judge one of them."""

from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined, InProcess, Outcome
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.checks import Check
from refssm.conformance.checks.drawing import Drawing
from refssm.conformance.gauges.gauge import Gauge, wide
from refssm.conformance.judging.expected import expect, hash_of
from refssm.conformance.judging.grading import compare, span_product
from refssm.conformance.judging.invariants import grade_invariants
from refssm.conformance.judging.verdict import Verdict, worst_of, wrong
from refssm.conformance.number_types import judged_type
from refssm.conformance.planted import PlantedBug
from refssm.conformance.standard import Standard

CASES = 25  # as many as the check `value` has
OTHER = wrong("another answer")
ENOUGH = 6  # failing cases: more of them only help to choose between two bugs


@dataclass(frozen=True)
class SpokenCall:
    """One call and its outcome; `arguments` are the cotangents, if any, and the arrays.

    `after`: the values that the same arguments had in an earlier call, if there was one.
    """

    arguments: list[np.ndarray]
    statics: dict
    vjp: bool
    view: str
    after: list[np.ndarray] | None
    outcome: Outcome


def key_of_call(arguments, statics: Mapping, vjp: bool) -> Hashable:
    """The same for two calls only if they have the same arguments, static ones too."""
    return vjp, tuple(sorted(statics.items())), tuple(hash_of(a) for a in arguments)


@dataclass(frozen=True)
class Episode:
    """The calls of one case, and the check's verdict on it."""

    verdict: Verdict
    calls: list[SpokenCall]


class Listening:
    """A worker that records its calls and their outcomes."""

    def __init__(self, worker, name: str):
        self.worker, self.name, self.calls = worker, name, []
        self.found = worker.found

    def call(self, name: str, arrays, statics, **how) -> Outcome:
        """Call the worker and record the outcome, unless it is of another operator, or of rows that
        end early: those outputs are not what the operator gives for the arguments."""
        outcome = self.worker.call(name, arrays, statics, **how)
        if name == self.name and how.get("lengths") is None:
            kept = {key: how.get(key, usual) for key, usual in HOW.items()}
            self.calls.append(SpokenCall(list(arrays), dict(statics), **kept, outcome=outcome))
        return outcome

    def narrow(self, name: str, arrays, statics):
        """The case as the implementation's `only` projects it."""
        return self.worker.narrow(name, arrays, statics)


HOW: dict[str, Any] = {"vjp": False, "view": "", "after": None}


def episode(check: Check, candidate: Candidate, case: Case) -> Episode:
    """Judge one case once more and record its calls."""
    heard = copy(candidate)
    listening = heard.worker = Listening(candidate.worker, candidate.op.name)
    try:
        verdict = check.judge_case(heard, case)
    except Broken as broken:
        verdict = broken.verdict
    except Declined:
        verdict = Verdict("-")
    return Episode(verdict, listening.calls)


def episodes(
    check: Check, candidate: Candidate, case: Case, drawing: Drawing, seed: int, enough=ENOUGH
) -> list[Episode]:
    """The failing case, and further cases of the check until enough of them have failed.

    If the child process died in the failing case, that is the only one.
    """
    heard = [episode(check, candidate, case)]
    lost = any(call.outcome.died for call in heard[0].calls)
    if check.strategy is None or lost:
        return heard
    for drawn in drawing.cases(CASES, seed):
        if sum(not e.verdict.ok for e in heard) > enough:
            break
        heard.append(episode(check, candidate, drawn))
    return heard


def overflowed(e: Episode) -> bool:
    """True if finite arguments gave an output that is not finite."""
    finite = (call for call in e.calls if all(np.isfinite(a).all() for a in call.arguments))
    return any(
        y.dtype.kind in "fc" and not np.isfinite(y).all()
        for call in finite
        for y in call.outcome.outputs
        if isinstance(y, np.ndarray)
    )


def expected(candidate: Candidate, call: SpokenCall) -> tuple[Gauge, ...]:
    """The gauges of the right outputs or gradients."""
    op = candidate.op
    vjp = op.bare_vjp if call.vjp else None
    return expect(op, call.arguments, call.statics, vjp, candidate.standard)


def graded(candidate: Candidate, call: SpokenCall, outputs, gauged) -> Verdict:
    """The worst verdict on the outputs by these gauges, in the types that they have."""
    op, standard = candidate.op, candidate.standard or Standard.of(judged_type(call.arguments))
    if op.contract.basis_free and not call.vjp:
        return grade_invariants(op, outputs, gauged, standard)
    product = 0.0 if call.vjp else span_product(op, call.arguments)
    if any(y.dtype.kind not in "fc" for y in outputs):
        return OTHER
    verdicts = []
    for y, gauge in zip(outputs, gauged, strict=True):
        narrow = np.finfo(y.dtype).eps > np.finfo(standard.type.carrier).eps
        of_type = Standard.of(y.dtype) if narrow else standard
        verdicts.append(compare(y, gauge, y.dtype, (), "", product, standard=of_type))
    return worst_of(verdicts)


def refused(candidate: Candidate, call: SpokenCall, outcome: Outcome) -> bool:
    """True if the judge refuses this outcome."""
    if outcome.status != "ok" or outcome.changed or outcome.aliased:
        return True
    right = expected(candidate, call)
    if len(right) != len(outcome.outputs) or not gave_arrays(outcome):
        return True
    unfit = any(y.shape != g.value.shape for y, g in zip(outcome.outputs, right, strict=True))
    if unfit or _narrowed(candidate, call, outcome) or complex_for_real(outcome, right):
        return True
    return not graded(candidate, call, outcome.outputs, right).ok


def gave_arrays(outcome: Outcome) -> bool:
    """True if the call returned, and returned arrays only."""
    arrays = all(isinstance(y, np.ndarray) for y in outcome.outputs)
    return outcome.status == "ok" and arrays


def complex_for_real(outcome: Outcome, right: tuple[Gauge, ...]) -> bool:
    """True if an output is complex, though none of the right ones is."""
    came, wanted = (
        any(map(np.iscomplexobj, y)) for y in (outcome.outputs, [g.value for g in right])
    )
    return came and not wanted


def _narrowed(candidate: Candidate, call: SpokenCall, outcome: Outcome) -> bool:
    """True if an output has less precision than the judged type."""
    standard = candidate.standard or Standard.of(judged_type(call.arguments))
    carrier = np.finfo(standard.type.carrier).eps
    return any(y.dtype.kind not in "fc" or np.finfo(y.dtype).eps > carrier for y in outcome.outputs)


class Computing:
    """A worker whose kernels compute in the arithmetic of a standard that is finer than its type.

    A planted bug must round as the judged kernel says that it does: in the arithmetic, and once
    to the type. In a 16-bit type it would otherwise explain any kernel that rounds each step.
    """

    def __init__(self, worker: InProcess, standard: Standard):
        self.worker, self.standard, self.found = worker, standard, worker.found

    def call(self, name, arrays, statics, *, dtype="", **how) -> Outcome:
        """Call the worker on the same numbers in the arithmetic's type, and round its outputs."""
        del dtype
        kind, computes = self.standard.type, self.standard.computes
        finer = wide(arrays, np.finfo(computes.carrier).dtype)
        came = self.worker.call(name, finer, statics, dtype=computes.name, **how)
        rounded = (
            kind.rounded(y, not np.iscomplexobj(y))
            if isinstance(y, np.ndarray) and y.dtype.kind in "fc"
            else y
            for y in came.outputs
        )
        return replace(came, outputs=tuple(rounded))

    def narrow(self, name, arrays, statics):
        """The case as it is: a planted bug takes every case."""
        return self.worker.narrow(name, arrays, statics)


def worker_of(bug: PlantedBug, candidate: Candidate) -> InProcess | Computing:
    """A worker that calls a planted bug in the arithmetic in which the candidate is judged."""
    worker, standard = InProcess([bug.found()]), candidate.standard
    if standard is None or standard.computes.digits <= standard.type.digits:
        return worker
    return Computing(worker, standard)


def outcome_of(worker, name, call: SpokenCall, candidate) -> Outcome:
    """The outcome of a recorded call in another implementation."""
    dtype = candidate.standard.type.name if candidate.standard else ""
    return worker.call(name, call.arguments, call.statics, dtype=dtype, **_how(call))


def in_double(bug: PlantedBug, call: SpokenCall) -> Outcome:
    """The outcome of a recorded call in a planted bug, on the same numbers in double precision."""
    arguments = wide(call.arguments, np.float64)
    return InProcess([bug.found()]).call(bug.op, arguments, call.statics, **_how(call))


def _how(call: SpokenCall) -> dict:
    return {"vjp": call.vjp, "view": call.view, "after": call.after}
