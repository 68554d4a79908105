"""What a function must not do to its arguments, and must not depend on.

Each check takes a candidate and one case and returns a verdict; where conventions differ between
libraries, the verdict passes with a note.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.candidate import (
    Broken,
    Candidate,
    refuse_unusable,
    without_result,
)
from refssm.conformance.calling.one_call import EARLIER, REWRITTEN, Declined, Outcome
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.limits import holds_zero
from refssm.conformance.cases.windows import shortened
from refssm.conformance.checks.conduct.resized import large, other_values
from refssm.conformance.checks.law import Conduct, conduct
from refssm.conformance.judging.verdict import WRITTEN, Verdict, worst_of, wrong

PASS = Verdict("A")
NO_STEP = "at {}=0 "


@conduct(of_memory=True, every_type=True)
def strides(candidate: Candidate, case: Case) -> Verdict:
    """Views with any strides give the outputs of contiguous arrays."""
    arrays, statics = candidate.given(case)
    views = [view for view in candidate.offer.views if view not in ("", "read-only")]
    if not views:
        return Verdict("-", notes=(f"{candidate.offer.framework} arrays have no strides",))
    plain = candidate.grader.outputs(
        arrays, candidate.results(arrays, statics), candidate.grader.expect(arrays, statics)
    )
    if not plain.ok:
        return _about("also with contiguous arrays: ", plain)
    for view in views:
        if view == "expanded":
            arrays, statics = candidate.narrowed([_constant(a) for a in arrays], statics)
        try:
            y = candidate.results(arrays, statics, view=view)
        except Broken as broken:
            return _about(f"{view}: ", broken.verdict)
        verdict = candidate.grader.outputs(arrays, y, candidate.grader.expect(arrays, statics))
        if not verdict.ok:
            return _about(f"{view}: ", verdict)
    return PASS


def _constant(a):
    """Every member of the batch replaced by the first, so that a view can have stride 0."""
    if a.dtype.kind == "i":  # offsets have no batch
        return a
    return np.broadcast_to(a[:1] if a.ndim else a, a.shape).copy()


@conduct(of_memory=True)
def readonly(candidate: Candidate, case: Case) -> Verdict:
    """Arguments that may not be written to are accepted."""
    if "read-only" not in candidate.offer.views:
        return Verdict("-", notes=(f"{candidate.offer.framework} has no read-only arrays",))
    arrays, statics = candidate.given(case)
    y = candidate.results(arrays, statics, view="read-only")
    return candidate.grader.outputs(arrays, y, candidate.grader.expect(arrays, statics))


@conduct()
def unchanged(candidate: Candidate, case: Case) -> Verdict:
    """A call does not write to its arguments."""
    return worst_of(
        _blame(candidate, outcome.changed, f"{at}the call wrote to its input", WRITTEN)
        for at, outcome in _outcomes(candidate, case)
    )


@conduct(without_arguments=True, of_memory=True, every_type=True)
def alias(candidate: Candidate, case: Case) -> Verdict:
    """Outputs share no memory with arguments, nor with the outputs of other calls, also where they
    have 128 kB or arguments are 0; a later call does not change them. Without steps the first
    state may be the last one: a note.
    """
    if candidate.offer.immutable:
        return Verdict("-", notes=(f"{candidate.offer.framework} arrays cannot be written to",))
    outcomes = chain(_outcomes(candidate, case, beside_others=True), _with_nothing(candidate, case))
    return worst_of(_alias(candidate, at, outcome) for at, outcome in outcomes)


def _alias(candidate: Candidate, at: str, outcome: Outcome) -> Verdict:
    """The verdict on one call; without steps the first state may come back, and that is a note."""
    if REWRITTEN in outcome.aliased:
        return wrong(f"{at}a later call changes the output of an earlier one")
    found = _blame(candidate, outcome.aliased, f"{at}an output shares memory with")
    if at == NO_STEP.format(candidate.op.leading) and not found.ok:
        return replace(PASS, notes=(found.message,))
    return found


def _with_nothing(candidate: Candidate, case: Case) -> Iterator[tuple[str, Outcome]]:
    """Calls in which a shortcut may return an argument: a scan without decay, or without steps.

    One argument is 0, or all but one; only arguments that may be 0. A call that fails says nothing.
    """
    op, (arrays, statics) = candidate.op, candidate.given(case)
    names, real = [*op.inputs], [a.dtype.kind == "f" for a in arrays]
    pairs = [(n, r) for n, r in zip(names, real, strict=True) if n not in op.discrete]
    able = [n for n, r in pairs if holds_zero(op.inputs[n], r)]
    chosen = {f"where `{n}` = 0 ": {n} for n in able}
    if len(able) > 2:
        chosen |= {f"where all but `{n}` are 0 ": {*able} - {n} for n in able}
    calls = {}
    for at, none in chosen.items():
        each = zip(names, arrays, strict=True)
        calls[at] = [np.zeros_like(a) if n in none else a for n, a in each]
    if op.state_outputs and op.leading not in candidate.between:
        calls[NO_STEP.format(op.leading)] = shortened(op, arrays, op.leading, 0)
    for at, changed in calls.items():
        if not candidate.inside(changed):
            continue
        try:
            given = [a.copy() for a in candidate.admitted(changed, statics)]  # it may write to them
            outcome = candidate.outcome(given, statics)
        except (Broken, Declined):
            continue
        if outcome.status == "ok":
            yield at, outcome


def _outcomes(candidate, case, beside_others=False):
    """An ordinary call, and one of length 1, where a copy is easily forgotten.

    With `beside_others` they follow other calls, and there is one with a large output.
    """
    op = candidate.op
    arrays, statics = candidate.given(case)
    cases = [("", arrays, statics, _before(candidate, case, arrays) if beside_others else None)]
    if op.leading and op.inputs and op.leading not in candidate.between:
        short = shortened(op, arrays, op.leading, 1)
        fitted = op.fitted(statics, {**case.sizes, op.leading: 1})
        cases.append((f"at {op.leading}=1 ", short, fitted, short if beside_others else None))
    for bigger, at in large(candidate, case) if beside_others else ():
        given = bigger.arrays
        cases.append((at, given, bigger.statics, _before(candidate, bigger, given)))
    for i, (at, given, told, after) in enumerate(cases):
        try:
            given, told = candidate.narrowed(given, told) if i else (given, told)
        except Declined:  # it declines one step, or so many
            continue
        if after is not None and [a.shape for a in after] != [a.shape for a in given]:
            after = given  # by `only`
        outcome = candidate.outcome([a.copy() for a in given], told, after=after)
        if outcome.status == "declined":
            if not i:
                raise Declined
            continue
        if outcome.status != "ok":
            raise Broken(without_result(outcome)).at(at)
        refuse_unusable(op, outcome.outputs)  # it may have done nothing at all
        yield at, outcome


def _before(candidate, case, arrays):
    """The values of earlier calls: others if there are any."""
    other = other_values(candidate, case)
    return arrays if other is None else other


def _blame(candidate, positions, what, kind="") -> Verdict:
    names = {EARLIER: "the output of an earlier call"}
    names |= {i: f"`{name}`" for i, name in enumerate(candidate.op.inputs)}
    told = f"{what} {', '.join(names[i] for i in positions)}"
    return wrong(told, kind=kind) if positions else PASS


@conduct()
def shapes(candidate: Candidate, case: Case) -> Verdict:
    """Sizes that disagree raise an error; code that accepts them gets a note."""
    op, (arrays, statics) = candidate.op, candidate.given(case)
    refuse_unusable(op, candidate.outputs(arrays, statics))  # Broken if even the valid call fails
    left_out = called = False
    for i, (name, dims) in enumerate(zip(op.inputs, op.input_dims, strict=True)):
        for axis, dim in enumerate(dims):
            if sum(dim in other for other in op.input_dims) < 2:
                continue
            longer = list(arrays)
            position = arrays[i].ndim - len(dims) + axis
            longer[i] = np.concatenate([arrays[i]] * 2, axis=position)
            if not candidate.accepts(longer, statics):
                left_out = True
                continue
            called = True
            if candidate.outcome(longer, statics).status == "ok":
                note = (
                    f"no error for `{name}` with {dim}={longer[i].shape[position]} where the other "
                )
                note += f"arguments have {dim}={arrays[i].shape[position]}"
                return Verdict("A", notes=(note,))
    return Verdict("-", notes=(ALL_LEFT_OUT,)) if left_out and not called else PASS


ALL_LEFT_OUT = "`only` declines or changes all arguments whose sizes disagree"


@conduct(without_arguments=True)
def empty(candidate: Candidate, case: Case) -> Verdict:
    """Length zero and state size zero are accepted, with right outputs: the last state of an empty
    piece is the first. Code that refuses them gets a note.
    """
    op, (given, told), notes = candidate.op, candidate.given(case), []
    refuse_unusable(op, candidate.outputs(given, told))
    # parameters have ranges of their own, which may exclude 0
    for dim in [d for d in case.sizes if d not in op.parameters]:
        arrays = shortened(op, given, dim, 0)
        statics = {**told, dim: 0} if dim in told else told
        wanted = op.output_shapes(*arrays, **statics)
        if not candidate.accepts(arrays, statics):
            notes.append(f"`only` declines or changes a case with {dim}=0, so that is not judged")
            continue
        outcome = candidate.outcome(arrays, statics)
        got = [getattr(y, "shape", None) for y in outcome.outputs]
        if outcome.status != "ok" or got != wanted:
            if op.offsets and not _defined(op, arrays, statics):
                continue  # no sequence, but steps
            came = outcome.message or f"returned shape {got}, want {wanted}"
            told = f"with {dim}=0{':' if came.startswith('`') else ' the call'} {came}"
            return Verdict("A", notes=(*notes, told))
        verdict = _graded_if_defined(candidate, arrays, statics, outcome.outputs)
        if not verdict.ok:
            return _about(f"with {dim}=0: ", verdict)
    return replace(PASS, notes=tuple(notes))


def _graded_if_defined(candidate: Candidate, arrays, statics, outputs) -> Verdict:
    """The verdict on outputs for a size of zero; a pass where the definition refuses that size."""
    if not _defined(candidate.op, arrays, statics):
        return PASS
    return candidate.grader.outputs(arrays, outputs, candidate.grader.expect(arrays, statics))


def with_flags(op: Operator) -> bool:
    """True if an argument is true or false, such as `resets`."""
    return any(domain.kind == "flag" for domain in op.inputs.values())


@conduct(owed=with_flags, of_memory=True)
def flags(candidate: Candidate, case: Case) -> Verdict:
    """Resets that are integers, 0 or another number, give the outputs of false and true. Code that
    refuses integers gets a note.
    """
    op, (arrays, statics) = candidate.op, candidate.given(case)
    places = [i for i, domain in enumerate(op.inputs.values()) if domain.kind == "flag"]
    wanted = candidate.grader.expect(arrays, statics)
    plain = candidate.grader.outputs(arrays, candidate.results(arrays, statics), wanted)
    if not plain.ok:
        return _about("also with resets of true and false: ", plain)
    for number in (1, 2):
        given = [a * np.int32(number) if i in places else a for i, a in enumerate(arrays)]
        outcome = candidate.outcome(given, statics)
        if outcome.status != "ok":
            told = outcome.message or "is declined"
            return Verdict("A", notes=(f"with resets of 0 and {number} the call {told}",))
        verdict = candidate.grader.outputs(arrays, outcome.outputs, wanted)
        if not verdict.ok:
            return _about(f"with resets of 0 and {number} as integers: ", verdict)
    return PASS


def _defined(op, arrays, statics) -> bool:
    """False if the definition refuses a size: a layer needs a channel, HiPPO a coefficient."""
    try:
        op.reference(*arrays, **statics)
    except ValueError:
        return False
    return True


def _about(what: str, verdict: Verdict) -> Verdict:
    """The verdict with where it came about before its message; its kind stays the same."""
    return replace(verdict, message=what + verdict.message, kind=verdict.failure[1])


ARGUMENTS: tuple[Conduct, ...] = (
    strides,
    readonly,
    unchanged,
    alias,
    shapes,
    empty,
    flags,
)
