"""Find planted bugs, which are implementations themselves, with the outputs of a failed one.

A bug is named only if, within the judge's tolerances, it gives the recorded outputs in every call
of every recorded case, right and wrong ones; if the judge refuses it on one of them; and if those
outputs are at least twice as near to the bug's as to the right ones. Rounding errors of an honest
program are about as far from both.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np

from refssm._adapted import adapters_of, through
from refssm._operator import Operator
from refssm.conformance.calling.one_call import Outcome
from refssm.conformance.calling.worker import InProcess
from refssm.conformance.checks.candidate import Candidate
from refssm.conformance.checks.checks import Check, rule_named
from refssm.conformance.diagnosis.transcript import Call, Episode, episode
from refssm.conformance.gauges.gauge import Gauge, gauges, wide
from refssm.conformance.judging.expected import expect, judged_type
from refssm.conformance.judging.grading import compare, span_product
from refssm.conformance.judging.invariants import grade_invariants
from refssm.conformance.judging.verdict import Verdict, kind_of, worst_of, wrong
from refssm.conformance.planted import PlantedBug, bugs_of
from refssm.conformance.standard import Standard

OTHER = wrong("another answer")
NEARER = 2.0  # the bug then explains more than half of the error


@cache
def bugs_of_operator(name: str, family: str) -> tuple[PlantedBug, ...]:
    """The planted bugs of one operator; imports only its family."""
    return tuple(d for d in bugs_of(family) if d.op == name)


@cache
def bugs_in(op: Operator) -> tuple[PlantedBug, ...]:
    """The planted bugs of an operator, for the parameters that it takes."""
    return tuple(_of_parameters(d, op) for d in bugs_of_operator(op.name, op.family))


def _of_parameters(bug: PlantedBug, op: Operator) -> PlantedBug:
    """The bug behind the operator's adapters."""
    if not adapters_of(op):
        return bug

    def wrong(right, *arrays, **statics):
        def planted(*natural, **statics):
            return bug.wrong(right, *natural, **statics)

        return through(op, planted, bug.of_gradient)(*arrays, **statics)

    return replace(bug, wrong=wrong)


def answering_alike(
    check: Check, candidate: Candidate, heard: list[Episode], among=()
) -> list[PlantedBug]:
    """The planted bugs with the same outputs: the nearest first, then those of this check."""
    op, vjp = candidate.op, check.rule.of_gradient
    known = list(among) or [d for d in bugs_in(op) if d.vjp or not vjp]
    if not check.rule.between_calls:  # a bug with random errors resembles any error of its size
        known = [d for d in known if not _between_calls(d)]
    wanted = f"{check.name}[{check.dtype}]"
    known.sort(key=lambda d: (d.caught_by != wanted, d.caught_by.split("[")[0] != check.name))
    failing = sorted(heard, key=lambda e: e.verdict.ok)  # they exclude most bugs
    calls = [call for e in failing for call in e.calls if call.vjp == vjp]
    told = [(d, _distance(d, candidate, calls)) for d in known]
    return [d for d, ratio in sorted(((d, r) for d, r in told if r is not None), key=_second)]


def _between_calls(bug: PlantedBug) -> bool:
    """True if the bug's results change between calls."""
    return rule_named(bug.caught_by.partition("[")[0]).between_calls


def misbehaving(check: Check, candidate: Candidate, case, heard: list[Episode]) -> list[PlantedBug]:
    """The planted bugs that this check finds with the same message, numbers aside."""
    op, told = candidate.op, _words(heard[0].verdict)
    found = []
    for d in bugs_in(op):
        if d.caught_by.split("[")[0] == check.name:
            other = copy(candidate)
            other.worker, other.sliced = InProcess([d.found()]), False
            other.offer = other.worker.found[0]
            if _words(episode(check, other, case).verdict) == told:
                found.append(d)
    return found


def _words(verdict: Verdict) -> str:
    """A message up to the first "got", without digits."""
    return "".join(c for c in verdict.message.split("got")[0] if not c.isdigit())


def _second(pair):
    return pair[1]


def _distance(d: PlantedBug, candidate: Candidate, calls: list[Call]) -> float | None:
    """The largest ratio between the bug's and the recorded outputs; None if it is excluded."""
    worst, raised, apart = 0.0, [], [(0.0, 0.0)]
    worker = InProcess([d.found()])
    for call in calls:
        outcome = outcome_of(worker, d.op, call, call.arguments, candidate)
        alike = _alike(d, worker, candidate, call, outcome)
        if not alike.ok:
            return None
        if alike.grade != "-":
            both = (outcome, call.outcome)  # outputs that pass say nothing about a bug
            if all(refused(candidate, call, came) for came in both):
                apart.append(_apart(d, worker, candidate, call, outcome, alike))
            worst = max(worst, alike.ratio)
            raised.append(outcome.status == "raised")
    from_right, from_bug = map(max, zip(*apart, strict=True))
    nearer = from_right > NEARER * from_bug
    # if all calls raised, the mistake may be any other one
    return worst if nearer and not all(raised) else None


def _apart(
    d, worker, candidate, call: Call, outcome: Outcome, alike: Verdict
) -> tuple[float, float]:
    """The distance of the outputs from the right ones and from the bug's, in units of K0."""
    theirs, right = call.outcome, expected(candidate, call)
    conduct = theirs.status != "ok" or theirs.changed or theirs.aliased
    if conduct or _between_calls(d):
        return np.inf, 0.0  # no distance is defined
    if candidate.op.contract.basis_free and not call.vjp:  # single entries have no distance
        return graded(candidate, call, theirs.outputs, right).ratio, alike.ratio
    from_right = _far(theirs.outputs, [g.value for g in right], right)
    if not np.isfinite(from_right):  # shapes, or places of NaN and infinity, differ
        return np.inf, 0.0
    wider = outcome_of(worker, d.op, call, wide(call.arguments, np.float64), candidate)
    bugs = [came.outputs for came in (outcome, wider) if came.status == "ok"]
    return from_right, min(_far(theirs.outputs, outputs, right) for outputs in bugs)


def _far(outputs, values, right: tuple[Gauge, ...]) -> float:
    """The largest difference in units of K0; infinite if shapes or special values differ."""
    if not len(outputs) == len(values) == len(right):
        return np.inf
    far = 0.0
    for y, value, gauge in zip(outputs, values, right, strict=True):
        if not y.shape == np.shape(value) == gauge.k0.shape or (kind_of(y) != kind_of(value)).any():
            return np.inf
        with np.errstate(all="ignore"):
            error = np.abs(y - value) / np.maximum(gauge.k0, np.finfo(y.dtype).tiny)
        far = max(far, float(error.max(initial=0.0, where=np.isfinite(error))))
    return far


def outcome_of(worker, name, call: Call, arguments, candidate) -> Outcome:
    """The outcome of a recorded call in another implementation, with these arguments."""
    dtype = candidate.held.type.name if candidate.held else ""
    how = {"vjp": call.vjp, "view": call.view, "after": call.after}
    return worker.call(name, arguments, call.statics, dtype=dtype, **how)


def _alike(d: PlantedBug, worker, candidate: Candidate, call: Call, outcome: Outcome) -> Verdict:
    """The verdict on the recorded outputs with the bug's as the right ones; "-" if undecided."""
    theirs = call.outcome
    if theirs.status == "declined":  # a declined case shows nothing
        return Verdict("-")
    came = [(o.status, o.changed, o.aliased) for o in (theirs, outcome)]
    if came[0] != came[1]:
        return OTHER
    if outcome.status != "ok":
        return Verdict("A" if outcome.status == "raised" else "-")
    if len(theirs.outputs) != len(outcome.outputs):
        return OTHER
    if any(_misfit(y, s) for y, s in zip(theirs.outputs, outcome.outputs, strict=True)):
        return OTHER
    wider = outcome_of(worker, d.op, call, wide(call.arguments, np.float64), candidate)
    told = [
        graded(candidate, call, theirs.outputs, gauged)
        for gauged in _gauged(d, candidate, call, outcome, wider)
    ]
    return min(told, key=lambda v: ("AB-NCF".index(v.grade), v.ratio), default=OTHER)


def _misfit(y, s) -> bool:
    """True if shapes differ or `y` is narrower; wider is a note, and one of them may be complex."""
    if not isinstance(y, np.ndarray) or not isinstance(s, np.ndarray):
        return True
    if {y.dtype.kind, s.dtype.kind} - {"f", "c"}:
        return (y.shape, y.dtype) != (s.shape, s.dtype)
    return y.shape != s.shape or np.finfo(y.dtype).eps > np.finfo(s.dtype).eps


def _gauged(d, candidate, call: Call, outcome: Outcome, wider: Outcome) -> Iterator[tuple]:
    """Gauges around the bug's outputs: from a run in double precision, then from its own run.

    The second run has rounding errors itself, so its bounds are doubled.
    """
    right = expected(candidate, call)
    if len(right) != len(outcome.outputs):
        return
    bounds, least = _bounds(d, candidate, call), candidate.held.floor if candidate.held else 0.0
    for outputs, rounded in ((wider.outputs, 1), (outcome.outputs, 2)):
        if len(outputs) == len(right) and all(isinstance(s, np.ndarray) for s in outputs):
            traced = bounds or [
                _over_time(candidate.op, g, i, call.vjp) for i, g in enumerate(right)
            ]
            pairs = zip(outputs, right, traced, strict=True)
            gauged = [_gauge(s, g, k, rounded, least) for s, g, k in pairs]
            if all(g.value.shape == s.shape for g, s in zip(gauged, outcome.outputs, strict=True)):
                yield tuple(gauged)


def _bounds(d: PlantedBug, candidate: Candidate, call: Call) -> list[np.ndarray] | None:
    """The bug's own rounding error bounds, or None if its program cannot be traced."""
    program, held = d.vjp if call.vjp else d.forward, candidate.held
    followed = candidate.op.contract.follows_each_operation
    if not followed or held is None or program is None:
        return None
    try:
        made = gauges(
            program,
            *call.arguments,
            unit=held.u,
            floor=held.floor,
            partial=call.vjp,
            **call.statics,
        )
    except Exception:  # uses functions without an error rule: the reference's bounds are used
        return None
    return [g.k0 for g in made] if len(made) == len(call.outcome.outputs) else None


def _gauge(value, expected: Gauge, k, rounded: int, least: float) -> Gauge:
    """The gauge of the bug's output: bounds scaled to its size, times `rounded`."""
    usual, size = _most(expected.value), _most(value)
    if k.shape != value.shape:
        k = np.full(value.shape, _most(expected.k0))
    k = k * max(1.0, size / usual if usual else 1.0)
    k = rounded * np.maximum(k, np.maximum(np.abs(value), least))
    return Gauge(value, k, k, expected.peak)


def _over_time(op: Operator, expected: Gauge, output: int, vjp: bool) -> np.ndarray:
    """The reference's bounds, the largest along time, because a bug may shift entries in time."""
    dims = (op.input_dims if vjp else op.output_dims)[output] if not (vjp and op.flags) else ()
    k = expected.k0
    if op.leading not in dims or not k.size:
        return k
    axis = dims.index(op.leading) - len(dims)
    return np.broadcast_to(k.max(axis, keepdims=True), k.shape)


def _most(a) -> float:
    """The largest finite modulus."""
    size = np.abs(a).astype(float)
    return float(size.max(initial=0.0, where=np.isfinite(size)))


def expected(candidate: Candidate, call: Call) -> tuple[Gauge, ...]:
    """The gauges of the right outputs or gradients."""
    op = candidate.op
    vjp = op.bare_vjp if call.vjp else None
    return expect(op, call.arguments, call.statics, vjp, candidate.held)


def graded(candidate: Candidate, call: Call, outputs, gauged) -> Verdict:
    """The worst verdict on the outputs by these gauges, in the types that they have."""
    op, held = candidate.op, candidate.held or Standard.of(judged_type(call.arguments))
    if op.contract.basis_free and not call.vjp:
        return grade_invariants(op, outputs, gauged, held)
    product = 0.0 if call.vjp else span_product(op, call.arguments)
    if any(y.dtype.kind not in "fc" for y in outputs):
        return OTHER
    verdicts = []
    for y, gauge in zip(outputs, gauged, strict=True):
        narrow = np.finfo(y.dtype).eps > np.finfo(held.type.carrier).eps
        standard = Standard.of(y.dtype) if narrow else held
        verdicts.append(compare(y, gauge, y.dtype, (), "", product, held=standard))
    return worst_of(verdicts)


def refused(candidate: Candidate, call: Call, outcome: Outcome) -> bool:
    """True if the judge refuses this outcome."""
    if outcome.status != "ok" or outcome.changed or outcome.aliased:
        return True
    right = expected(candidate, call)
    if len(right) != len(outcome.outputs):
        return True
    unfit = any(y.shape != g.value.shape for y, g in zip(outcome.outputs, right, strict=True))
    if unfit or _narrowed(candidate, call, outcome):
        return True
    return not graded(candidate, call, outcome.outputs, right).ok


def _narrowed(candidate: Candidate, call: Call, outcome: Outcome) -> bool:
    """True if an output has less precision than the judged type."""
    held = candidate.held or Standard.of(judged_type(call.arguments))
    carrier = np.finfo(held.type.carrier).eps
    return any(y.dtype.kind not in "fc" or np.finfo(y.dtype).eps > carrier for y in outcome.outputs)
