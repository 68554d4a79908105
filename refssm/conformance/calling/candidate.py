"""The judged implementation, as the rules call it: outputs, or an exception with a verdict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import replace

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.calling.one_call import UNSTEADY, Declined, Outcome
from refssm.conformance.calling.worker import NOT_CALLED
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.partners import within
from refssm.conformance.cases.windows import at_length, cut
from refssm.conformance.judging.grading import Grader
from refssm.conformance.judging.verdict import WRITTEN, Verdict, misfit, types_in, wrong
from refssm.conformance.number_types import judged_type, number_type
from refssm.conformance.standard import Standard
from refssm.conformance.usage_error import UsageError


class Broken(Exception):
    """A call gave no usable result; `verdict` is the verdict on it."""

    def __init__(self, verdict: Verdict):
        super().__init__(verdict.message)
        self.verdict = verdict

    def at(self, place: str) -> Broken:
        """The same, with words before its message on which call it was, such as "at l=257 "."""
        return Broken(replace(self.verdict, message=f"{place}{self.verdict.message}"))


def without_result(outcome: Outcome) -> Verdict:
    """The verdict on a call that raised, ended its process, or returned nothing usable."""
    if outcome.status == "malformed":
        return wrong(outcome.message, kind="what it returns")
    return Verdict("F", np.inf, 0.0, outcome.message, error=True, died=outcome.died)


def refuse_unusable(op: Operator, outputs) -> None:
    """Raise Broken unless the outputs of a forward call are arrays, as many as wanted."""
    if len(outputs) != len(op.outputs):
        message = f"returned {len(outputs)} outputs, want {len(op.outputs)}"
        raise Broken(wrong(message, kind="number of outputs"))
    for y, name in zip(outputs, op.outputs, strict=True):
        if not isinstance(y, np.ndarray):
            message = misfit(y, (), np.dtype(float), name)
            raise Broken(wrong(message, kind=f"shape or type of `{name}`"))


class Candidate:
    """The implementation that is judged: an operator, the worker that calls it, its standard."""

    def __init__(self, op: Operator, worker, offer: Offer):
        self.op, self.worker, self.offer = op, worker, offer
        self.has_vjp = offer.has_vjp
        self.sliced = False
        self.standard: Standard | None = None  # None: that of the arrays' type
        self.between: Mapping = {}  # ranges of sizes, from `--where`
        self.accepted: Collection[str] = ()  # the types that are judged and accepted
        self.length = 0  # the largest leading size of the case, after `only`
        self.late: Callable[[], bool] = bool  # true when the seconds of its check are over

    def judged_in(self, dtype: str) -> Candidate:
        """A copy with the standard of one type and of the author's declared accuracy."""
        other = copy(self)
        other.standard = Standard.of(dtype, self.offer.accuracy, self.offer.ftz)
        return other

    @property
    def grader(self) -> Grader:
        """Grades its results, by its standard."""
        return Grader(self.op, self.standard)

    def given(self, case: Case) -> tuple[list[np.ndarray], dict]:
        """The case's arguments, projected by the implementation's `only` if it has one."""
        return self.narrowed(case.arrays, case.statics)

    def answer(self, case: Case) -> tuple[list[np.ndarray], dict, tuple[np.ndarray, ...]]:
        """The case's arguments, and the outputs of a forward call with them."""
        arrays, statics = self.given(case)
        return arrays, statics, self.results(arrays, statics)

    def narrowed(self, arrays, statics, op: Operator | None = None) -> tuple[list, dict]:
        """Arguments projected by the implementation's `only`; raises Declined where it declines."""
        op = op or self.op
        kept = list(arrays), dict(statics)
        if self._narrows(op):
            kept = self.worker.narrow(op.name, *kept)
        if isinstance(kept, Outcome):
            if kept.status == UNSTEADY:
                raise UsageError(f"{op}: {kept.message}")
            if not kept.message.startswith(NOT_CALLED):  # else no call of `only` is to blame
                kept = replace(kept, message=f"`only` {kept.message}")
            raise Broken(without_result(kept))
        if kept is None:
            raise Declined
        if op is self.op and op.leading:
            arrays, statics = kept
            self.length = max(self.length, int(op.sizes(*arrays, **statics)[op.leading]))
        return kept

    def admitted(self, arrays, statics) -> list[np.ndarray]:
        """Arguments that a law made; raises Declined if `only` declines or changes them."""
        kept, told = self.narrowed(arrays, statics)
        if told != dict(statics) or not all(map(_equal, kept, arrays)):
            raise Declined
        return kept

    def inside(self, arrays) -> bool:
        """True if arguments that a check made satisfy the conditions of the operator's domains."""
        kind = self.standard.type if self.standard else number_type(judged_type(arrays))
        return within(self.op, arrays, kind)

    def accepts(self, arrays, statics) -> bool:
        """True if `only` returns these arguments as they are; they may be those of no case."""
        if not self._narrows(self.op):
            return True
        kept = self.worker.narrow(self.op.name, list(arrays), dict(statics))
        if kept is None or isinstance(kept, Outcome):
            return False
        return kept[1] == dict(statics) and all(map(_equal, kept[0], arrays))

    def piece(self, arrays, statics, op: Operator | None = None) -> tuple[list, dict]:
        """Arguments of a piece of a sequence, as `only` shortens it, perhaps with another chunk.

        Raises Declined if `only` declines it, or changes it otherwise: then it is no piece of the
        sequence any more.
        """
        op = op or self.op
        kept, told = self.narrowed(arrays, statics, op)
        length = op.sizes(*kept, **told)[op.leading]
        asked = at_length(op, statics, length)
        alike = {name: n for name, n in told.items() if name != "chunk"}
        if any(asked[name] != n for name, n in alike.items()):
            raise Declined
        if not all(map(_equal, kept, cut(op, arrays, slice(0, length)))):
            raise Declined
        return kept, told

    def _narrows(self, op: Operator) -> bool:
        """True if the implementation of an operator has an `only`."""
        return {offer.name: offer for offer in self.worker.found}[op.name].narrows

    def outcome(self, arrays, statics, *, name="", **how) -> Outcome:
        """The outcome of one call; never raises for a failed call."""
        name, dtype = name or self.op.name, self.standard.type.name if self.standard else ""
        return self.worker.call(name, arrays, statics, sliced=self.sliced, dtype=dtype, **how)

    def outputs(self, arrays, statics, **how) -> tuple[np.ndarray, ...]:
        """The outputs of one call; Declined, or Broken if it failed or wrote to its inputs."""
        outcome = self.outcome(arrays, statics, **how)
        if outcome.status == "declined":
            raise Declined
        if outcome.status != "ok":
            raise Broken(without_result(outcome))
        if outcome.changed:
            names = [*(f"d{y}" for y in self.op.outputs if how.get("vjp")), *self.op.inputs]
            changed = ", ".join(f"`{names[i]}`" for i in outcome.changed)
            raise Broken(wrong(f"the call wrote to its input {changed}", kind=WRITTEN))
        return outcome.outputs

    def results(self, arrays, statics, *, op: Operator | None = None, **how) -> tuple:
        """The outputs of one forward call; raises Broken for wrong shapes or types."""
        op = op or self.op
        outputs = self.outputs(arrays, statics, name=op.name, **how)
        refuse_unusable(op, outputs)
        types, shapes = types_in(op, arrays, self.standard), op.output_shapes(*arrays, **statics)
        either = any(t.kind == "c" for t in types)
        for y, dtype, shape, name in zip(outputs, types, shapes, op.outputs, strict=True):
            unfit = misfit(y, shape, dtype, name, either)
            if unfit:
                raise Broken(wrong(unfit, kind=f"shape or type of `{name}`"))
        return outputs


def _equal(a, b) -> bool:
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
