"""The implementation under judgement: calls it with arrays and turns what happens into verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace

import numpy as np

from refssm._operator import Operator
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.calling.one_call import Declined, Outcome
from refssm.conformance.cases.case import Case, ordinary_case
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.agreement import same
from refssm.conformance.judging.expected import expect, judged_type
from refssm.conformance.judging.grading import compare, grade_outputs
from refssm.conformance.judging.verdict import Verdict, misfit, types_in, worst_of, wrong
from refssm.conformance.number_types import number_type
from refssm.conformance.standard import Standard

LOST = ("crashed", "hung")


class Broken(Exception):
    """A call gave no result; carries the verdict."""

    def __init__(self, verdict: Verdict):
        super().__init__(verdict.message)
        self.verdict = verdict


class Candidate:
    """One implementation of one operator behind a worker, and the standard it is held to."""

    def __init__(self, op: Operator, worker, offer: Offer):
        self.op, self.worker, self.offer = op, worker, offer
        self.has_vjp = offer.has_vjp
        self.sliced = False
        self.held: Standard | None = None  # without one, that of the arrays it is given
        self.between: Mapping = {}  # sizes it may be called with, by `--where`

    def judged_in(self, dtype: str) -> Candidate:
        """The same, held to the standard of one type and of its author's budget."""
        other = copy(self)
        other.held = Standard.of(dtype, self.offer.accuracy, self.offer.ftz)
        return other

    def expect(self, arrays, statics, op: Operator | None = None) -> tuple[Gauge, ...]:
        """What a forward call should return, by its standard."""
        return expect(op or self.op, arrays, statics, held=self.held)

    def graded(self, arrays, outputs, gauged, overflow=False, which=()) -> Verdict:
        """The outputs of one call, or `which` of them, by its standard."""
        return grade_outputs(self.op, arrays, outputs, gauged, overflow, self.held, which)

    def agree(self, arrays, y, other, *bounds, output=0, through=False) -> Verdict:
        """Two results of its own, by its standard; `through` a state rounded to the type."""
        held = self.held
        if through and held is not None and held.u < held.type.u:
            held = replace(held, computes=held.type)
        return same(self.op, arrays, y, other, *bounds, output=output, held=held)

    def given(self, case: Case) -> tuple[list[np.ndarray], dict]:
        """The case's arguments, as the implementation's own `only` projects them."""
        return self.narrowed(case.arrays, case.statics)

    def narrowed(self, arrays, statics, op: Operator | None = None) -> tuple[list, dict]:
        """Arguments as the implementation supports them; raises Declined where it does not."""
        name = (op or self.op).name
        offers = {offer.name: offer for offer in self.worker.found}
        if not offers[name].narrows:
            return list(arrays), dict(statics)
        kept = self.worker.narrow(name, list(arrays), dict(statics))
        if isinstance(kept, Outcome):
            raise Broken(Verdict("F", np.inf, 0.0, f"`only` {kept.message}", error=True))
        if kept is None:
            raise Declined
        return kept

    def outcome(self, arrays, statics, *, name="", **how) -> Outcome:
        """One call, whatever comes of it."""
        name, dtype = name or self.op.name, self.held.type.name if self.held else ""
        return self.worker.call(name, arrays, statics, sliced=self.sliced, dtype=dtype, **how)

    def outputs(self, arrays, statics, **how) -> tuple[np.ndarray, ...]:
        """The outputs of one call; Declined or Broken where there are none."""
        outcome = self.outcome(arrays, statics, **how)
        if outcome.status == "declined":
            raise Declined
        if outcome.status == "malformed":
            raise Broken(wrong(outcome.message))
        if outcome.status != "ok":
            raise Broken(Verdict("F", np.inf, 0.0, outcome.message, error=True))
        if outcome.changed:
            names = [*(f"d{y}" for y in self.op.outputs if how.get("vjp")), *self.op.inputs]
            changed = ", ".join(f"`{names[i]}`" for i in outcome.changed)
            raise Broken(wrong(f"the call wrote to its input {changed}"))
        return outcome.outputs

    def results(self, arrays, statics, *, op: Operator | None = None, view="") -> tuple:
        """The outputs of one forward call, of the right shapes and types."""
        op = op or self.op
        outputs = self.outputs(arrays, statics, name=op.name, view=view)
        types, shapes = types_in(op, arrays, self.held), op.output_shapes(*arrays, **statics)
        if len(outputs) != len(shapes):
            raise Broken(wrong(f"returned {len(outputs)} outputs, want {len(shapes)}"))
        either = any(t.kind == "c" for t in types)
        for y, dtype, shape, name in zip(outputs, types, shapes, op.outputs, strict=True):
            unfit = misfit(y, shape, dtype, name, either)
            if unfit:
                raise Broken(wrong(unfit))
        return outputs

    def value(self, arrays, statics, view="") -> Verdict:
        """Grade one forward call."""
        try:
            y = self.outputs(arrays, statics, view=view)
        except Broken as broken:
            return broken.verdict
        return self.graded(arrays, y, self.expect(arrays, statics))

    def gradient(self, cotangents, arrays, statics, view="") -> Verdict:
        """Grade one call of the VJP, argument by argument."""
        op = self.op
        try:
            gradients = self.outputs([*cotangents, *arrays], statics, vjp=True, view=view)
        except Broken as broken:
            return broken.verdict
        gauged = expect(op, [*cotangents, *arrays], statics, op.bare_vjp, self.held)
        precision = judged_type([*cotangents, *arrays])
        verdicts = []
        axes = [(*batch, *dims) for batch, dims in zip(op.batch_axes, op.input_dims, strict=True)]
        described = zip(op.inputs, axes, arrays, strict=True)
        described = [(name, dims, a) for name, dims, a in described if name not in op.flags]
        for g, gauge, (name, dims, a) in zip(gradients, gauged, described, strict=True):
            kind = precision if np.iscomplexobj(a) else np.finfo(precision).dtype
            kind = np.dtype(kind)
            verdicts.append(compare(g, gauge, kind, dims, f"d{name}", held=self.held))
        return worst_of(verdicts)

    def probe(self, cases_by_type, larger=None) -> dict[str, str]:
        """Learn how it wants to be called: why a type is not accepted, or "" where it is.

        Given one small case with batch axes per type, decides between batched and slice by slice;
        where it declines that, a `larger` one.
        """
        refused = {}
        for position, (name, case) in enumerate(cases_by_type.items()):
            held = self.judged_in(name)
            arrays, statics, outcome = held._tried(case)
            if outcome.status == "declined" and larger:
                arrays, statics, outcome = held._tried(larger[name])
            refused[name] = outcome.message if _refuses(outcome) else ""
            if outcome.status in LOST:  # do not spend the one restart on probing
                return refused | dict.fromkeys(
                    list(cases_by_type)[position + 1 :],
                    "not tried, since another type ended the process",
                )
            if position == 0 and arrays and not self.offer.layout and outcome.status != "declined":
                self.sliced = held._takes_core_arrays_only(arrays, statics, outcome)
                if self.sliced:
                    refused[name] = ""
        return refused

    def _tried(self, case: Case) -> tuple[list[np.ndarray], dict, Outcome]:
        """One call; where its own `only` refuses or fails, the checks will say it case by case."""
        try:
            arrays, statics = self.given(case)
        except (Declined, Broken):
            return case.arrays, case.statics, Outcome("declined")
        return arrays, statics, self.outcome(arrays, statics)

    def _takes_core_arrays_only(self, arrays, statics, outcome: Outcome) -> bool:
        """Whether slices are right where a batch fails or is read as the first core axis."""
        wanted = self.expect(arrays, statics)
        batched = outcome.outputs
        if [getattr(y, "shape", None) for y in batched] == [g.value.shape for g in wanted]:
            if self.graded(arrays, batched, wanted).ok:
                return False
            if not self._reads_batch_as_time(arrays, statics, batched):
                return False
        self.sliced = True
        alone = self.outcome(arrays, statics)
        self.sliced = False
        return alone.status == "ok" and self.graded(arrays, alone.outputs, wanted).ok

    def _reads_batch_as_time(self, arrays, statics, batched) -> bool:
        """Whether the leading axis was taken for the first core axis: a loop over `a[k]`."""
        op = self.op
        time = op.output_dims[0][:1]
        if any(dims[:1] != time for dims in op.input_dims) or any(a.ndim < 2 for a in arrays):
            return False
        turned = [np.swapaxes(a, 0, 1) for a in arrays]
        try:
            op.output_shapes(*turned, **statics)
        except ValueError:  # arguments with different batch axes
            return False
        gauges = [_axes_exchanged(g) for g in self.expect(turned, statics)]
        return self.graded(arrays, batched, gauges).ok


# of a function that begins to work and stumbles, whatever the type
MISTAKES = ("IndexError", "NameError", "RecursionError", "UnboundLocalError", "ZeroDivisionError")


def _refuses(outcome: Outcome) -> bool:
    """Whether a call says that a type is none of its business: it raises, as libraries do.

    A name that is not there, or the exit code of a program, is an error: its checks will tell.
    """
    kind, _, _ = outcome.message.removeprefix("raised ").partition(":")
    stumbled = kind.split(" (")[0] in MISTAKES or outcome.message.startswith("ended with")
    return outcome.status == "raised" and not stumbled


def _axes_exchanged(gauge):
    """What was expected, with the batch axis and the first core axis exchanged."""
    fields = {f: np.swapaxes(getattr(gauge, f), 0, 1) for f in ("value", "k0", "k1")}
    return replace(gauge, **fields)


def accepts_mixed_kinds(candidate: Candidate, types, refused) -> bool:
    """Whether real arguments may stand beside complex ones; a kernel may take one kind only."""
    op = candidate.op
    either = tuple(n for n, d in op.inputs.items() if d.kind == "either")
    dtype = next((t for t in types if number_type(t).carrier.kind == "c" and not refused[t]), "")
    if not dtype or not either or len(either) == len(op.inputs) == 1:
        return True
    try:
        case = ordinary_case(op, dtype, real=either[-1:])
        arrays, statics = candidate.given(case)
    except (Declined, Broken):
        return True
    return candidate.judged_in(dtype).outcome(arrays, statics).status != "raised"
