"""Repetition: the same arguments twenty times give the same outputs, bit for bit.

The last call is made on arrays of earlier calls, which had other values then: a result that is kept
by the identity or the address of an argument is the earlier one. Then each argument changes alone:
what is kept for a key that lacks an argument is of its earlier value. A VJP is called twice, too,
the second time after a forward call with other values.

Differences within tolerance are mistakes too, unless the author declares `deterministic=False`: a
result that changes from run to run cannot be debugged, and often comes from memory that is read
before it is written. Sums by atomic additions and by threads are the usual honest reason.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.cotangents import cotangents_of
from refssm.conformance.cases.partners import changed_alone, together
from refssm.conformance.cases.scaled import comparable
from refssm.conformance.checks.conduct.resized import longer, other_values
from refssm.conformance.checks.law import conduct
from refssm.conformance.judging.verdict import Verdict, told_apart, worst_of, wrong
from refssm.conformance.number_types import NumberType

CALLS = 20
PULLS = 10
KIND = "results of equal calls"
KEPT = "is something kept by the identity or the address of an argument?"
LEFT = "is something kept from the last call?"
SHORT = "not repeated with a longer input: its share of the seconds of --time was over"
KEYED = "is something kept that depends on it?"
DECLARE = "if that is meant, as with atomic additions, declare deterministic=False"


@conduct(without_arguments=True, between_calls=True)
def repeat(candidate: Candidate, case: Case) -> Verdict:
    """Twenty calls with the same input give the same outputs, bit for bit; so do twenty with a
    longer input. If `deterministic=False` is declared, differences within tolerance are a note.
    New values in the arrays of an earlier call give the outputs of the new values, and so does a
    new value of one argument alone. The VJP gives its gradients again, also for a longer input, and
    after a forward call with other values, of all arguments or of one.
    """
    verdict = _repeated(candidate, case, "")
    if verdict.ok:
        verdict = worst_of([verdict, *_changed_alone(candidate, case)])
    if verdict.ok and candidate.has_vjp:
        pulled = _pulled_repeatedly(candidate, case, ""), _pulled_again(candidate, case)
        verdict = worst_of([verdict, *pulled])
    if not verdict.ok:
        return verdict
    for larger, at in longer(candidate, case):
        if candidate.late():
            return replace(verdict, notes=(*verdict.notes, SHORT))
        try:
            verdict = worst_of([verdict, _repeated(candidate, larger, at)])
            if verdict.ok and candidate.has_vjp:
                verdict = worst_of([verdict, _pulled_repeatedly(candidate, larger, at)])
            return verdict
        except Declined:  # this length is not supported
            continue
        except Broken as broken:
            raise broken.at(at) from None
    return verdict


def _repeated(candidate: Candidate, case: Case, at: str) -> Verdict:
    arrays, statics = candidate.given(case)
    values = other_values(candidate, case)
    of_values = None if values is None else candidate.results(values, statics)
    first, *later = [candidate.results(arrays, statics) for _ in range(CALLS)]
    verdict = Verdict("A")
    if differ := [ys for ys in later if not all(map(_same_bits, ys, first))]:
        told = f"{at}{len(differ)} of {len(later)} later calls differ from the first"
        verdict = _within_tolerance(candidate, arrays, statics, differ, first)
        if not verdict.ok:
            return replace(verdict, message=f"{told}: {verdict.message}", kind=KIND)
        told += f", {_farthest(candidate.op.outputs, differ, first, case.type)}"
        if candidate.offer.deterministic:
            return replace(wrong(f"{told}; {DECLARE}", kind=KIND), notes=verdict.notes)
        verdict = worst_of([verdict, Verdict("-", notes=(told,))])
    if values is None or of_values is None:
        return verdict
    again = candidate.results(values, statics, after=arrays)
    return worst_of([verdict, _anew(candidate, values, statics, again, of_values, at)])


def _changed_alone(candidate: Candidate, case: Case) -> Iterator[Verdict]:
    """The outputs after a call in which only one argument had another value, for each argument.

    Nothing is said of a function whose outputs are inaccurate in the first call already.
    """
    values = other_values(candidate, case)
    arrays, statics = candidate.given(case)
    if values is None or len(arrays) < 2:
        return
    first = candidate.results(arrays, statics)
    if not candidate.grader.outputs(arrays, first, candidate.grader.expect(arrays, statics)).ok:
        return
    for what, mixed in _mixed(candidate.op, case.type, arrays, values):
        try:
            mixed = candidate.admitted(mixed, statics)
            candidate.results(arrays, statics)  # what is kept may be of the last call only
            outputs = candidate.results(mixed, statics)
        except Declined:
            continue
        verdict = candidate.grader.outputs(mixed, outputs, candidate.grader.expect(mixed, statics))
        told = f"with a new value of {what} alone: {verdict.message}; {KEYED}"
        yield verdict if verdict.ok else replace(verdict, message=told, kind=KIND)


def _mixed(op: Operator, kind, arrays, values) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The arguments with the new value of one, or of those that belong together, and its name."""
    for names in together(op):
        changed = zip(op.inputs, arrays, values, strict=True)
        mixed = [new if name in names else old for name, old, new in changed]
        yield " and ".join(f"`{name}`" for name in names), mixed
    for name, value in changed_alone(op, arrays, kind):
        given = zip(op.inputs, arrays, strict=True)
        yield f"`{name}`", [value if other == name else old for other, old in given]


def _pulled_repeatedly(candidate: Candidate, case: Case, at: str) -> Verdict:
    """Equal calls of the VJP give right gradients each time; other bits are a note.

    Backward passes on a device often add up by atomic operations. A race gives wrong gradients in
    some calls only, and `gradient` makes each call once.
    """
    arrays, statics = candidate.given(case)
    cotangents, _ = cotangents_of(case, arrays, statics, candidate.offer.views)
    calls = []
    for _ in range(PULLS):
        try:
            calls.append(candidate.outputs([*cotangents, *arrays], statics, vjp=True))
        except (Broken, Declined):  # which the check of gradients tells
            return Verdict("A")
    first, *later = calls
    if not all(isinstance(g, np.ndarray) for of in calls for g in of):  # and this, too
        return Verdict("A")
    differ = [of for of in later if not all(map(_same_bits, of, first))]
    if not differ:
        return Verdict("A")
    told = f"{at}{len(differ)} of {len(later)} later calls of the VJP differ from the first"
    for of in (first, *differ):
        verdict = candidate.grader.gradients(of, cotangents, arrays, statics)
        if not verdict.ok:
            return replace(verdict, message=f"{told}: {verdict.message}", kind=KIND)
    names = [f"d{name}" for name in candidate.op.inputs if name not in candidate.op.discrete]
    return Verdict("A", notes=(f"{told}, {_farthest(names, differ, first, case.type)}",))


def _pulled_again(candidate: Candidate, case: Case) -> Verdict:
    """The VJP gives its gradients again after a forward call with other values.

    One that keeps the states of the last forward call, or adds to earlier gradients, does not. One
    that recomputes them where it sees another argument than that call had is asked about each.
    """
    values = other_values(candidate, case)
    if values is None:
        return Verdict("A")
    arrays, statics = candidate.given(case)
    cotangents, view = cotangents_of(case, arrays, statics, candidate.offer.views)

    def after(forward):
        candidate.results(forward, statics)
        return candidate.outputs([*cotangents, *arrays], statics, vjp=True, view=view)

    others = [("other values", values)]
    for what, mixed in _mixed(candidate.op, case.type, arrays, values) if len(arrays) > 1 else ():
        others.append((f"another value of {what} alone", mixed))
    first = None
    for what, forward in others:
        try:
            forward = forward if forward is values else candidate.admitted(forward, statics)
            first = after(arrays) if first is None else first
            again = after(forward)
        except Broken:  # which the check of gradients tells
            return Verdict("A")
        except Declined:
            continue
        if not all(isinstance(g, np.ndarray) for g in (*first, *again)):  # and this, too
            return Verdict("A")
        if all(map(_same_bits, again, first)):
            continue
        verdict = candidate.grader.gradients(again, cotangents, arrays, statics)
        if not verdict.ok:
            told = f"the VJP after a forward call with {what}: {verdict.message}; {LEFT}"
            return replace(verdict, message=told, kind=KIND)
    return Verdict("A")


def _anew(candidate: Candidate, arrays, statics, again, first, at: str) -> Verdict:
    """The outputs `again`, for new values in the arrays of an earlier call, beside a first call.

    The last bits may differ, because the memory may begin at another multiple of 16 bytes.
    """
    if all(map(_same_bits, again, first)):
        return Verdict("A")
    verdict = _within_tolerance(candidate, arrays, statics, [again], first)
    told = f"{at}with new values in the arrays of an earlier call: {verdict.message}; {KEPT}"
    return Verdict("A") if verdict.ok else replace(verdict, message=told, kind=KIND)


def _within_tolerance(candidate: Candidate, arrays, statics, differ, first) -> Verdict:
    """The worst comparison of a later call with the first."""
    bounds = candidate.grader.expect(arrays, statics)
    if candidate.op.contract.basis_free:  # outputs in another basis are right too
        firsts = tuple(replace(b, value=y) for b, y in zip(bounds, first, strict=True))
        return worst_of(candidate.grader.outputs(arrays, ys, firsts) for ys in differ)
    return worst_of(
        candidate.grader.agree(arrays, y, other, bound, bound, output=j)
        for ys in (comparable(candidate.op, ys, first) for ys in differ)
        for j, (y, other, bound) in enumerate(zip(ys, first, bounds, strict=True))
        if not _same_bits(y, other)
    )


def _same_bits(y: np.ndarray, other: np.ndarray) -> bool:
    return y.dtype == other.dtype and y.tobytes() == other.tobytes()


def _farthest(names, differ, first, kind: NumberType) -> str:
    """The largest difference of an entry, in units in the last place of the judged type."""
    worst, told = -1.0, ""
    for ys in differ:
        for name, y, other in zip(names, ys, first, strict=True):
            far = _units(y, other, kind)
            place = np.unravel_index(np.argmax(far), far.shape) if far.size else ()
            if far.size and far[place] > worst:
                worst, (got, before) = far[place], told_apart(y[place], other[place])
                entry = f"`{name}`[{', '.join(map(str, place))}]" if place else f"`{name}`"
                told = f"{entry}: {before}, then {got}"
    units = "unit" if worst == 1 else "units"
    return f"by at most {worst:.3g} {units} in the last place ({told})"


def _units(y: np.ndarray, other: np.ndarray, kind: NumberType) -> np.ndarray:
    """|y − other| in units in the last place, of each entry; the larger of real and imaginary."""
    if np.iscomplexobj(y) or np.iscomplexobj(other):
        parts = [_units(part(y), part(other), kind) for part in (np.real, np.imag)]
        return np.maximum(*parts)
    with np.errstate(all="ignore"):
        y, other = (np.asarray(a, np.longdouble) for a in (y, other))
        size = np.maximum(np.maximum(np.abs(y), np.abs(other)), kind.tiny)
        far = np.abs(y - other) / np.ldexp(2 * kind.u, np.frexp(size)[1] - 1)
    return np.where(np.isnan(far), 0, far).astype(float)
