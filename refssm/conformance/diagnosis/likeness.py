"""How near the outputs of a planted bug are to those that were recorded.

Both are within the judge's tolerances of the same values in every call, and the recorded outputs
are nearer to the bug's than to the right ones.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.calling.one_call import Outcome
from refssm.conformance.checks.checks import rule_named
from refssm.conformance.diagnosis.place import Wrong
from refssm.conformance.diagnosis.transcript import (
    OTHER,
    SpokenCall,
    complex_for_real,
    expected,
    gave_arrays,
    graded,
    in_double,
    outcome_of,
    refused,
    worker_of,
)
from refssm.conformance.gauges.gauge import Gauge, gauges
from refssm.conformance.judging.verdict import Verdict, kind_of
from refssm.conformance.planted import PlantedBug
from refssm.conformance.standard import C

Answers = tuple[Outcome, Outcome]  # of a planted bug, in the call's type and in double
NEARER = 2.0  # the bug then explains more than half of the error
COVERED = 0.9  # of the entries that overflow: chunks of another length begin elsewhere
LEAST = 0.125  # what it changes in a call, at least: roundings differ between programs


def everywhere(
    candidate: Candidate, call: SpokenCall, answers: Answers
) -> tuple[SpokenCall, Answers]:
    """All entries, those that overflowed too."""
    return call, answers


def where_finite(
    candidate: Candidate, call: SpokenCall, answers: Answers
) -> tuple[SpokenCall, Answers]:
    """Right values in place of what overflowed in either, if the bug itself overflows.

    Another program with the same mistake overflows at other entries.
    """
    theirs, (own, wider) = call.outcome, answers
    right = [g.value for g in expected(candidate, call)]
    came = (theirs, own, wider)
    if any(not gave_arrays(o) or len(o.outputs) != len(right) for o in came):
        return call, answers
    if any(np.shape(y) != g.shape for o in came for y, g in zip(o.outputs, right, strict=True)):
        return call, answers
    own_finite = [np.isfinite(y) for y in own.outputs]
    if all((f | ~np.isfinite(g)).all() for f, g in zip(own_finite, right, strict=True)):
        return call, answers  # it does not overflow here
    kept = [f & np.isfinite(y) for f, y in zip(own_finite, theirs.outputs, strict=True)]

    def patched(o: Outcome) -> Outcome:
        each = zip(kept, o.outputs, right, strict=True)
        return replace(o, outputs=tuple(np.where(k, y, g.astype(y.dtype)) for k, y, g in each))

    return replace(call, outcome=patched(theirs)), (patched(own), patched(wider))


def _overflows(candidate: Candidate, call: SpokenCall, outcome: Outcome) -> bool:
    """True if an entry is not finite where the right one is."""
    return any(bad.any() for bad in _overflowed(candidate, call, outcome))


def _overflow_there(candidate: Candidate, call: SpokenCall, own: Outcome) -> bool:
    """True if the bug overflows where the outputs do, but for a few entries."""
    theirs = _overflowed(candidate, call, call.outcome)
    bugs = _overflowed(candidate, call, own)
    both = sum(int((one & other).sum()) for one, other in zip(theirs, bugs, strict=True))
    return both >= COVERED * sum(int(bad.sum()) for bad in theirs)


def _overflowed(candidate: Candidate, call: SpokenCall, outcome: Outcome) -> list[np.ndarray]:
    """By output, the entries that are not finite and should be."""
    each = zip(outcome.outputs, expected(candidate, call), strict=False)
    return [~np.isfinite(y) & np.isfinite(g.value) for y, g in each if y.shape == g.value.shape]


def between_calls(bug: PlantedBug) -> bool:
    """True if the bug's results change between calls."""
    return rule_named(bug.caught_by.partition("[")[0]).between_calls


def largest_error(candidate: Candidate, calls: list[SpokenCall]) -> float:
    """The largest distance of the recorded outputs from the right ones; infinite if a call has none
    that can be measured in units of K0."""
    if candidate.op.contract.basis_free:
        return np.inf
    judged = (call for call in calls if call.outcome.status != "declined")
    wrong = (call for call in judged if refused(candidate, call, call.outcome))
    return max((_error(candidate, call) for call in wrong), default=0.0)


def _error(candidate: Candidate, call: SpokenCall) -> float:
    theirs, right = call.outcome, expected(candidate, call)
    if theirs.status != "ok" or theirs.changed or theirs.aliased or not gave_arrays(theirs):
        return np.inf
    unreal = complex_for_real(theirs, right)
    return np.inf if unreal else _far(theirs.outputs, [g.value for g in right], right)


def _too_far(d, candidate, call: SpokenCall, answers: Answers, error: float) -> bool:
    """True if the bug's outputs are as far away in this one call as the right ones in any.

    Nothing else is known of the bug yet: to bound its roundings takes a hundred times as long.
    """
    own, came = answers[0], [answer.outputs for answer in answers if answer.status == "ok"]
    if not np.isfinite(error) or between_calls(d) or own.status != "ok" or not gave_arrays(own):
        return False
    if not all(refused(candidate, call, answer) for answer in (own, call.outcome)):
        return False  # outputs that pass say nothing about a bug
    right = expected(candidate, call)
    return error <= NEARER * min(_far(call.outcome.outputs, y, right) for y in came)


def distance(
    d: PlantedBug, candidate: Candidate, calls: list[SpokenCall], where, error: float = np.inf
) -> float | None:
    """The largest ratio between the bug's and the recorded outputs; None if it is excluded.

    `error` is the largest distance of the recorded outputs from the right ones.
    """
    worst, raised, apart, absent = 0.0, [], [(0.0, 0.0)], np.zeros((2, 3), int)
    worker = worker_of(d, candidate)
    for recorded in calls:
        told = outcome_of(worker, d.op, recorded, candidate), in_double(d, recorded)
        call, answers = where(candidate, recorded, told)
        if _too_far(d, candidate, call, answers, error):
            return None
        alike = _alike(d, candidate, call, answers)
        both = (call.outcome, answers[0])
        if not alike.ok:
            if where is everywhere and not any(map(partial(refused, candidate, call), both)):
                continue  # both are right: they may differ where grade N allows it
            return None
        if alike.grade == "-":
            continue
        failing = [refused(candidate, call, came) for came in both]
        absent += _absent(candidate, call, answers)
        worst = max(worst, alike.ratio)
        raised.append(answers[0].status == "raised")
        if where is where_finite and _overflows(candidate, recorded, recorded.outcome):
            if not _overflow_there(candidate, recorded, told[0]):
                return None
            apart.append((np.inf, 0.0))
        if not failing[0]:  # outputs that pass say nothing about a bug
            continue
        from_right, from_bug, effect = _apart(d, candidate, call, answers, alike)
        if effect < LEAST * from_right:
            return None  # the bug is not in this call, which fails
        if failing[1]:
            apart.append((from_right, from_bug))
    from_right, from_bug = map(max, zip(*apart, strict=True))
    wrong, beside, _ = absent[0 if absent[1, 2] else 1]  # in double precision if that is it
    nearer = from_right > NEARER * from_bug and 2 * beside <= wrong
    # if all calls raised, the mistake may be any other one
    return worst if nearer and not all(raised) else None


def _absent(candidate: Candidate, call: SpokenCall, answers: Answers) -> np.ndarray:
    """For either run of the bug: how many entries it makes grossly wrong, at how many of them the
    outputs are right, and how many outputs are not its own, as they are the right ones.

    A cut-off below −15 is no log(1 + e^v), which has lost digits from −3 on.
    """
    found, standard = np.zeros((2, 3), int), candidate.standard
    if standard is None or (candidate.op.contract.basis_free and not call.vjp):
        return found
    for run, came in zip(found, answers, strict=True):
        each = zip(call.outcome.outputs, came.outputs, expected(candidate, call), strict=False)
        for y, s, gauge in each:
            if np.shape(y) == np.shape(s) == gauge.value.shape and y.dtype.kind in "fc":
                bad, theirs = (Wrong(x, gauge, standard, "", ()) for x in (s, y))
                gross = bad.bad & (bad.error > C * bad.allowed(bad.want))
                apart = np.abs(y - s) > bad.allowed(bad.want)
                others = bad.judged & np.isfinite(y) & np.isfinite(s) & apart
                run += int(gross.sum()), int((gross & ~theirs.bad).sum()), int(others.sum())
    return found


def _apart(
    d, candidate, call: SpokenCall, answers: Answers, alike: Verdict
) -> tuple[float, float, float]:
    """How far the outputs are from the right ones, and the bug's from the outputs and the right
    ones, in units of K0."""
    theirs, right = call.outcome, expected(candidate, call)
    conduct = theirs.status != "ok" or theirs.changed or theirs.aliased
    if conduct or between_calls(d):
        return np.inf, 0.0, np.inf  # no distance is defined
    if candidate.op.contract.basis_free and not call.vjp:  # single entries have no distance
        return graded(candidate, call, theirs.outputs, right).ratio, alike.ratio, np.inf
    values = [g.value for g in right]
    from_right = _far(theirs.outputs, values, right)
    unreal = all(complex_for_real(came, right) for came in (theirs, answers[0]))
    if unreal or not np.isfinite(from_right):
        return np.inf, 0.0, np.inf  # types, shapes, or places of NaN and infinity, differ
    bugs = [came.outputs for came in answers if came.status == "ok"]
    from_bug = min(_far(theirs.outputs, outputs, right) for outputs in bugs)
    return from_right, from_bug, max(_far(outputs, values, right) for outputs in bugs)


def _far(outputs, values, right: tuple[Gauge, ...]) -> float:
    """The largest difference in units of K0; infinite if shapes or special values differ."""
    if not len(outputs) == len(values) == len(right):
        return np.inf
    far = 0.0
    for y, value, gauge in zip(outputs, values, right, strict=True):
        alike = y.dtype.kind in "fc" and y.shape == np.shape(value) == gauge.k0.shape
        if not alike or (kind_of(y) != kind_of(value)).any():
            return np.inf
        with np.errstate(all="ignore"):
            error = np.abs(y - value) / np.maximum(gauge.k0, np.finfo(y.dtype).tiny)
        far = max(far, float(error.max(initial=0.0, where=np.isfinite(error))))
    return far


def _alike(d: PlantedBug, candidate: Candidate, call: SpokenCall, answers: Answers) -> Verdict:
    """The verdict on the recorded outputs with the bug's as the right ones; "-" if undecided."""
    theirs, (own, _) = call.outcome, answers
    if theirs.status == "declined":  # a declined case shows nothing
        return Verdict("-")
    if (theirs.status, theirs.changed, theirs.aliased) != (own.status, own.changed, own.aliased):
        return OTHER
    if own.status != "ok":
        return Verdict("A" if own.status == "raised" else "-")
    if len(theirs.outputs) != len(own.outputs):
        return OTHER
    if any(_misfit(y, s) for y, s in zip(theirs.outputs, own.outputs, strict=True)):
        return OTHER
    told = [
        graded(candidate, call, theirs.outputs, gauged)
        for gauged in _gauged(d, candidate, call, answers)
    ]
    alike = min(told, key=lambda v: ("AB-NCF".index(v.grade), v.ratio), default=OTHER)
    unlike = alike.grade == "-" and _wrong_kinds(theirs, own, expected(candidate, call))
    return Verdict("A") if unlike else alike


def _wrong_kinds(theirs: Outcome, own: Outcome, right) -> bool:
    """True if NaN and infinity are at the same entries in both, but not in the right values."""
    pairs = zip(theirs.outputs, own.outputs, strict=True)
    same = all((kind_of(y) == kind_of(s)).all() for y, s in pairs)
    wanted = [kind_of(g.value) for g in right]
    return same and not all(map(np.array_equal, map(kind_of, own.outputs), wanted))


def _misfit(y, s) -> bool:
    """True if shapes differ or `y` is narrower; wider is a note, and one of them may be complex."""
    if not isinstance(y, np.ndarray) or not isinstance(s, np.ndarray):
        return True
    if {y.dtype.kind, s.dtype.kind} - {"f", "c"}:
        return (y.shape, y.dtype) != (s.shape, s.dtype)
    return y.shape != s.shape or np.finfo(y.dtype).eps > np.finfo(s.dtype).eps


def _gauged(d, candidate, call: SpokenCall, answers: Answers) -> Iterator[tuple]:
    """Gauges around the bug's outputs: from a run in double precision, then from its own run.

    The second run has rounding errors itself, so its bounds are doubled. A wrong program may round
    more than the right one, so bounds that are not traced are at least its own errors.
    """
    right, (own, wider) = expected(candidate, call), answers
    if len(right) != len(own.outputs):
        return
    bounds, least = (
        _bounds(d, candidate, call),
        candidate.standard.floor if candidate.standard else 0.0,
    )
    for outputs, rounded in ((wider.outputs, 1), (own.outputs, 2)):
        if len(outputs) == len(right) and all(isinstance(s, np.ndarray) for s in outputs):
            traced = bounds or [
                _over_time(candidate.op, g.k0, i, call.vjp) for i, g in enumerate(right)
            ]
            errors = [0.0] * len(right) if bounds else _errors(candidate, call, answers, right)
            each = zip(outputs, right, traced, errors, strict=True)
            gauged = [_gauge(s, g, k, own, rounded, least) for s, g, k, own in each]
            if all(g.value.shape == s.shape for g, s in zip(gauged, own.outputs, strict=True)):
                yield tuple(gauged)


def _bounds(d: PlantedBug, candidate: Candidate, call: SpokenCall) -> list[np.ndarray] | None:
    """The bug's own rounding error bounds, or None if its program cannot be traced."""
    program, standard = d.vjp if call.vjp else d.forward, candidate.standard
    followed = candidate.op.contract.follows_each_operation
    if not followed or standard is None or program is None:
        return None
    try:
        made = gauges(
            program,
            *call.arguments,
            unit=standard.u,
            floor=standard.floor,
            partial=call.vjp,
            **call.statics,
        )
    except Exception:  # uses functions without an error rule: the reference's bounds are used
        return None
    return [g.k0 for g in made] if len(made) == len(call.outcome.outputs) else None


def _errors(candidate: Candidate, call: SpokenCall, answers: Answers, right) -> list:
    """The errors of the bug's own run in units of u, the largest along time."""
    (own, wider), standard = (came.outputs for came in answers), candidate.standard
    if len(own) != len(wider) or standard is None:
        return [0.0] * len(right)
    found: list = []
    for i, (y, exact, gauge) in enumerate(zip(own, wider, right, strict=True)):
        if not np.shape(y) == np.shape(exact) == gauge.value.shape:
            found.append(0.0)
            continue
        error = np.abs(y - exact) / standard.u
        error = np.where(np.isfinite(error), error, 0.0)
        found.append(_over_time(candidate.op, error, i, call.vjp))
    return found


def _gauge(value, expected: Gauge, k, own, rounded: int, least: float) -> Gauge:
    """The gauge of the bug's output: bounds scaled to its size, or its errors, times `rounded`."""
    usual, size = _most(expected.value), _most(value)
    if k.shape != value.shape:
        k = np.full(value.shape, _most(expected.k0))
    if expected.value.shape == value.shape:  # NaN that the bug swallows has no bound
        judged = np.isfinite(expected.value) | ~np.isfinite(value)
        k = np.where(judged, k, _most(expected.k0))
    k = k * max(1.0, size / usual if usual else 1.0)
    k = rounded * np.maximum(np.maximum(k, own), np.maximum(np.abs(value), least))
    return Gauge(value, k, k, expected.peak)


def _over_time(op: Operator, k: np.ndarray, output: int, vjp: bool) -> np.ndarray:
    """Bounds or errors, the largest along time, because a bug may shift entries in time."""
    dims = (op.input_dims if vjp else op.output_dims)[output] if not (vjp and op.discrete) else ()
    if op.leading not in dims or not k.size:
        return k
    axis = dims.index(op.leading) - len(dims)
    return np.broadcast_to(k.max(axis, keepdims=True), k.shape)


def _most(a) -> float:
    """The largest finite modulus."""
    size = np.abs(a).astype(float)
    return float(size.max(initial=0.0, where=np.isfinite(size)))
