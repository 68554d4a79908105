"""The first calls of an implementation: which types it accepts, and how it must be called."""

from collections import defaultdict
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from refssm._declaration.layout import canonical, length, parse, sizes_of
from refssm.conformance.calling.calls.fitting import reordered
from refssm.conformance.calling.calls.refusals import OF_DEVICE, refuses
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined, Outcome
from refssm.conformance.cases.case import Case, ordinary_case
from refssm.conformance.checks.beside_old import Beside
from refssm.conformance.judging.verdict import Verdict
from refssm.conformance.number_types import number_type
from refssm.conformance.running.scope import Scope
from refssm.conformance.running.settings import Session
from refssm.conformance.usage_error import UsageError

SMALL_SIZES = (5, 3, 4, 2)
BLOCK_SIZES = (128, 16, 4, 2)  # for implementations that accept only whole blocks


class FirstCall(NamedTuple):
    """The first call in one type."""

    case: Case
    outcome: Outcome

    @property
    def killed(self) -> bool:
        """True if it ended the process, or did not return."""
        return self.outcome.died


class FirstCalls(NamedTuple):
    """The first calls in some types."""

    refused: dict[str, str]  # for each type, why it is refused, or ""
    made: dict[str, FirstCall]  # by type; those after a call that ended the process are not made


class Probe:
    """Facts found before the checks, each once; another process may already have found them."""

    def __init__(self, session: Session, scope: Scope, candidate: Candidate):
        self.session, self.scope, self.candidate = session, scope, candidate
        self.learned = session.learned.get(scope.op.name)
        self.made: dict[str, FirstCall] = {}  # by type
        self.of_both: FirstCall | None = None  # the call with real and complex arguments
        self.convention: str | None = None  # in which it is right; None: not looked for
        self.explained: dict[str, list] = defaultdict(list)  # by check, in the types so far

    @cached_property
    def refused(self) -> dict[str, str]:
        """For each type, why it is not accepted, or ""."""
        if self.learned:
            self.candidate.sliced = self.learned.sliced
            return self.learned.refused
        self.session.tick(f"{self.scope.op}: the first calls", 0, 0)
        lacks = {t: why for t, why in self.scope.offer.lacks.items() if t in self.scope.types}
        there = [t for t in self.scope.types if t not in lacks]
        small, large = (self._ordinary(there, sizes) for sizes in (SMALL_SIZES, BLOCK_SIZES))
        calls = first_calls(self.candidate, small, large)
        self.made |= calls.made
        return calls.refused | lacks

    @cached_property
    def accepted(self) -> list[str]:
        """The accepted types; if none is, the first type, so that the report shows its error."""
        there = [t for t in self.scope.types if t not in self.scope.offer.lacks]
        return [t for t in there if not self.refused[t]] or there[:1]

    @cached_property
    def misfit(self) -> str:
        """Why the declared layout does not fit, by the first calls; "" if it may.

        Either an output has other axes, or the calls in all types raise.
        """
        if self.learned:
            return self.learned.misfit
        if not (self.scope.offer.layout and self.accepted and self.made):
            return ""
        firsts = self.made
        first = firsts.get(self.accepted[0])
        if first and first.outcome.misfit:
            return first.outcome.message
        first, *_ = firsts.values()
        raised = all(f.outcome.status == "raised" for f in firsts.values())
        if not raised or first.outcome.message.startswith(OF_DEVICE):
            return ""
        told = f"{first.outcome.message}; in its layout {self._called(first.case)}"
        fits, why = self._fitting(first.case)
        return told + f"; a layout that fits: {fits} (tried: {why})" * bool(fits)

    def _fitting(self, case: Case) -> tuple[str, str]:
        """A layout with the axes in another order, in which a call that raises is right, or the
        only one in which it returns the declared shapes, and which of both; else ("", "")."""
        layout = parse(self.scope.op, self.scope.offer.layout)
        arrays, statics = self.candidate.given(case)
        in_type, fits = self.candidate.judged_in(next(iter(self.made))), []
        wanted = in_type.grader.expect(arrays, statics)
        for other in reordered(layout):
            outcome = in_type.outcome(arrays, statics, layout=str(other))
            if outcome.died:  # another try costs another process
                return "", ""
            if outcome.status != "ok":
                continue
            if in_type.grader.outputs(arrays, outcome.outputs, wanted).ok:
                return str(other), "the values are right"
            fits.append(other)
        return (str(fits[0]), "the shapes fit") if len(fits) == 1 else ("", "")

    def _called(self, case: Case) -> str:
        """The shapes of the arguments of a call, in the declared layout."""
        op, layout = self.scope.op, parse(self.scope.op, self.scope.offer.layout)
        arrays, statics = self.candidate.given(case)
        sizes = sizes_of(op, canonical(op).inputs, arrays, statics)
        named = zip(op.inputs, layout.inputs, strict=True)
        shapes = [f"`{name}` {tuple(length(x, sizes) for x in axes)}" for name, axes in named]
        return f"the arguments have the shapes {', '.join(shapes)}"

    def reason(self, dtype: str) -> str:
        """Why a type is not judged."""
        lacking = self.scope.offer.lacks.get(dtype)
        return lacking or f"{dtype} is not accepted: {self.refused.get(dtype, '')}"

    @cached_property
    def broken(self) -> list[str]:
        """Types whose first call is a failure: it ended the process, or the author declares them.

        If no type is accepted, the checks of the first one say so.
        """
        refused, firsts = self.refused, self.made
        killed = [t for t in firsts if firsts[t].killed]
        declared = [t for t in self.scope.offer.dtypes if refused.get(t)]
        there = [t for t in declared if t not in (*self.accepted, *self.scope.offer.lacks)]
        tried = [t for t in there if t in firsts or self.learned]
        return [t for t in self.scope.types if t in (*killed, *tried)]

    def first_call(self, dtype: str) -> FirstCall:
        """The first call in a type; made again if another process made it."""
        if dtype not in self.made:
            sizes = (SMALL_SIZES, BLOCK_SIZES)
            ordinary = (self._ordinary([dtype], each) for each in sizes)
            self.made |= first_calls(copy(self.candidate), *ordinary).made
        return self.made[dtype]

    @cached_property
    def mixed(self) -> bool:
        """True if real and complex arguments may be passed together."""
        if self.learned:
            return self.learned.mixed
        if self.scope.only_complex:
            return False
        self.of_both = call_of_both_kinds(self.candidate, self.scope.types, self.refused)
        return self.of_both is None or self.of_both.outcome.status != "raised"

    def wrong_first(self, candidate: Candidate) -> tuple[FirstCall, Verdict] | None:
        """A call in the type of `candidate`, made before the first check, whose outputs are wrong.

        The checks make other calls, so a fault of just these would never be seen: a kernel that is
        not compiled yet, a table that the first call fills.
        """
        assert candidate.standard is not None
        dtype = candidate.standard.type.name
        made = {f"the first call in {t}": first for t, first in self.made.items() if t == dtype}
        if candidate.sliced and next(iter(self.made), "") == dtype:  # it was called with its batch
            made = {}
        if self.mixed and self.of_both and self.of_both.case.type.name == dtype:
            made["the first call with real and complex arguments"] = self.of_both
        for what, first in made.items():
            if first.outcome.status != "ok":
                continue
            arrays, statics = candidate.given(first.case)
            op, outputs = candidate.op, first.outcome.outputs
            along = tuple(j for j in range(len(op.outputs)) if j not in op.state_outputs)
            verdict, _ = candidate.grader.value(arrays, statics, outputs, along)
            if not verdict.ok:
                told = f"{what}: {verdict.message}"
                return first, replace(verdict, message=told, kind=verdict.failure[1])
        return None

    @cached_property
    def older(self) -> Beside | None:
        """The older implementation of the same operator, for `--against`, or None."""
        worker, older = self.session.against, self.session.settings.older
        if worker is None:
            return None
        op = self.scope.op
        offer = next((o for o in worker.found if o.name == op.name), None)
        if offer is None:
            raise UsageError(f"--against {older}: it has no {op} to compare with")
        candidate = Candidate(op, worker, offer)
        first_calls(candidate, self._ordinary(self.accepted))
        return Beside(candidate, older)

    def _ordinary(self, types, sizes=SMALL_SIZES) -> Mapping:
        """One ordinary case in each type."""
        between = self.session.settings.where.sizes
        return {t: ordinary_case(self.scope.op, t, sizes, between=between) for t in types}


def first_calls(candidate: Candidate, cases_by_type, larger=None) -> FirstCalls:
    """One call in each type; also decides if calls must be slice by slice: `candidate.sliced`.

    `cases_by_type` has one small case with batch axes per type. If that is declined, a `larger`
    case is tried.
    """
    refused, made = {}, {}
    for position, (name, case) in enumerate(cases_by_type.items()):
        in_type = candidate.judged_in(name)
        arrays, statics, outcome = _tried(in_type, case)
        if outcome.status == "declined" and larger:
            case = larger[name]
            arrays, statics, outcome = _tried(in_type, case)
        made[name] = FirstCall(case, outcome)
        refused[name] = outcome.message if refuses(outcome) else ""
        if outcome.died:  # do not spend the one restart on probing
            others = list(cases_by_type)[position + 1 :]
            why = "not tried, since another type ended the process"
            return FirstCalls(refused | dict.fromkeys(others, why), made)
        declined = outcome.status == "declined"
        if position == 0 and arrays and not candidate.offer.layout and not declined:
            candidate.sliced = _takes_core_arrays_only(in_type, arrays, statics, outcome)
            if candidate.sliced:
                refused[name] = ""
    return FirstCalls(refused, made)


def _tried(candidate: Candidate, case: Case) -> tuple[list[np.ndarray], dict, Outcome]:
    """One call; "declined" also if `only` fails, because the checks will report that."""
    try:
        arrays, statics = candidate.given(case)
    except (Declined, Broken):
        return case.arrays, case.statics, Outcome("declined")
    return arrays, statics, candidate.outcome(arrays, statics)


def _takes_core_arrays_only(candidate: Candidate, arrays, statics, outcome: Outcome) -> bool:
    """True if single slices give right results and the batched call does not.

    A batched call with outputs of the right shapes counts as wrong only if it took the batch
    axis for time.
    """
    wanted = candidate.grader.expect(arrays, statics)
    batched = outcome.outputs
    if [getattr(y, "shape", None) for y in batched] == [g.value.shape for g in wanted]:
        if candidate.grader.outputs(arrays, batched, wanted).ok:
            return False
        if not _reads_batch_as_time(candidate, arrays, statics, batched):
            return False
    candidate.sliced = True
    alone = candidate.outcome(arrays, statics)
    candidate.sliced = False
    return alone.status == "ok" and candidate.grader.outputs(arrays, alone.outputs, wanted).ok


def _reads_batch_as_time(candidate: Candidate, arrays, statics, batched) -> bool:
    """True if the outputs are right with batch and time exchanged, as of a loop over `a[k]`."""
    op = candidate.op
    time = op.output_dims[0][:1]
    if any(dims[:1] != time for dims in op.input_dims) or any(a.ndim < 2 for a in arrays):
        return False
    turned = [np.swapaxes(a, 0, 1) for a in arrays]
    try:
        op.output_shapes(*turned, **statics)
    except ValueError:  # arguments with different batch axes
        return False
    gauges = [_axes_exchanged(g) for g in candidate.grader.expect(turned, statics)]
    return candidate.grader.outputs(arrays, batched, gauges).ok


def _axes_exchanged(gauge):
    """The gauge with the first two axes exchanged: batch axis and first core axis."""
    return gauge.moved(lambda a: np.swapaxes(a, 0, 1))


def call_of_both_kinds(candidate: Candidate, types, refused) -> FirstCall | None:
    """A call with real and complex arguments together; None where there is nothing to mix."""
    op = candidate.op
    either = tuple(n for n, d in op.inputs.items() if d.kind == "either")
    dtype = next((t for t in types if number_type(t).carrier.kind == "c" and not refused[t]), "")
    if not dtype or not either or len(either) == len(op.inputs) == 1:
        return None
    try:
        case = ordinary_case(op, dtype, real=either[-1:])
        arrays, statics = candidate.given(case)
    except (Declined, Broken):
        return None
    return FirstCall(case, candidate.judged_in(dtype).outcome(arrays, statics))
