"""Lengths: rows of a batch that end at steps of their own, as in a batch of prompts.

A function that takes the number of steps of each row declares the argument, `lengths="seq_lens"`.
Beyond its end a row has NaN in forward calls: a kernel that multiplies it by 0 in place of leaving
it out is seen. For gradients there are ordinary numbers, and cotangents of 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.cotangents import random_like
from refssm.conformance.cases.windows import at_length, time_axes
from refssm.conformance.checks.conduct.resized import longer
from refssm.conformance.checks.law import NOTHING, conduct
from refssm.conformance.judging.verdict import Verdict, misfit, worst_of, wrong

ROWS = 3
SHORT = 32  # with fewer steps a case is one that is made smaller: it fails alone, or not at all


@conduct(owed=lambda op: bool(op.rows))
def lengths(candidate: Candidate, case: Case) -> Verdict:
    """Rows with lengths of their own give what each row gives alone, with the last state at its
    own end; what is beyond the end does not count, also where it is NaN.

    Of gradients those of arguments that each row has for itself are judged.
    """
    op = candidate.op
    case = replace(case, batch={**case.batch, op.rows: ROWS})
    verdict = worst_of([NOTHING, *_Rows.of(candidate, case).verdicts()])
    if not verdict.ok or case.sizes[op.leading] < SHORT:
        return verdict
    for larger, at in longer(candidate, case):
        try:
            told = worst_of([verdict, *_Rows.of(candidate, larger).verdicts()])
            return told if told.ok else replace(told, message=f"{at}{told.message}")
        except Declined:  # this length is not supported
            continue
        except Broken as broken:
            raise broken.at(at) from None
    return verdict


@dataclass(frozen=True)
class _Rows:
    """A call whose rows end at steps of their own."""

    candidate: Candidate
    case: Case
    arrays: list[np.ndarray]  # each with a row of its own, if it has steps and rows
    statics: dict
    ends: np.ndarray
    steps: int

    @classmethod
    def of(cls, candidate: Candidate, case: Case) -> "_Rows":
        """One row has all steps, the others any number from 1 on."""
        op, (arrays, statics) = candidate.op, candidate.given(case)
        steps, rng = op.sizes(*arrays, **statics)[op.leading], case.generator(900)
        rows = (op.batch_shape(*arrays) or (1,))[0]
        ends = np.array([steps, *rng.integers(1, max(2, steps), rows - 1)])
        rng.shuffle(ends)
        timed = zip(arrays, time_axes(op), strict=True)
        whole = [
            a if axis is None else _in_rows(op, i, a, rows) for i, (a, axis) in enumerate(timed)
        ]
        return cls(candidate, case, whole, statics, ends, steps)

    def verdicts(self) -> Iterator[Verdict]:
        """Of each row: its outputs, then its gradients."""
        candidate, arrays = self.candidate, [self._padded(i, np.nan) for i in self._inputs()]
        outputs = candidate.results(arrays, self.statics, lengths=self.ends)
        for row, end in enumerate(self.ends):
            own, fewer = self._alone(row), at_length(candidate.op, self.statics, int(end))
            mine = tuple(self._output(j, y, row) for j, y in enumerate(outputs))
            wanted = candidate.grader.expect(own, fewer)
            yield _said(candidate.grader.outputs(own, mine, wanted), row, end)
        if candidate.has_vjp:
            yield from self._of_gradients(outputs)

    def _of_gradients(self, outputs) -> Iterator[Verdict]:
        """The verdicts on the gradients of each row; beyond its end cotangents are 0."""
        candidate, op, cotangents = self.candidate, self.candidate.op, []
        rng, kind = self.case.generator(901), self.case.type
        for j, y in enumerate(outputs):
            d = random_like(y.shape, y.dtype, rng)
            if op.leading in op.output_dims[j]:
                for row in range(len(self.ends)):
                    d[(row, *self._within(op.output_dims[j], row, beyond=True))] = 0
            cotangents.append(kind.rounded(d, real=not np.iscomplexobj(d)))
        arrays = [self._padded(i, None) for i in self._inputs()]
        found = candidate.outputs([*cotangents, *arrays], self.statics, vjp=True, lengths=self.ends)
        for name, g, a in zip(op.inputs, found, arrays, strict=True):
            if unfit := misfit(g, a.shape, a.dtype, f"d{name}", either=True):
                raise Broken(wrong(unfit, kind=f"shape or type of `d{name}`"))
        with_rows = [
            name for i, name in enumerate(op.inputs) if _row_axis(op, i, arrays[i]) is not None
        ]
        for row, end in enumerate(self.ends):
            own, fewer = self._alone(row), at_length(op, self.statics, int(end))
            given = [self._output(j, d, row) for j, d in enumerate(cotangents)]
            mine = [self._taken(i, g, row, padded=True) for i, g in enumerate(found)]
            told = candidate.grader.gradients(mine, given, own, fewer, with_rows)
            yield _said(told, row, end)

    def _inputs(self) -> range:
        return range(len(self.arrays))

    def _alone(self, row: int) -> list[np.ndarray]:
        """The arguments of one row, without what is beyond its end."""
        return [self._taken(i, a, row) for i, a in enumerate(self.arrays)]

    def _taken(self, i: int, a, row: int, *, padded=False):
        """The part of an argument, or of its gradient, that belongs to one row."""
        op = self.candidate.op
        axis, end = _row_axis(op, i, a), self.ends[row]
        if axis is not None:
            a = np.take(a, [row if a.shape[axis] > 1 else 0], axis=axis)
        if (time := time_axes(op)[i]) is not None:
            first = self.steps - end if padded and self._left and axis is not None else 0
            a = np.take(a, np.arange(first, first + end), axis=time)
        return np.array(a, order="C")

    def _padded(self, i: int, beyond):
        """An argument whose rows are padded with `beyond`; with None by their own other steps."""
        op, a = self.candidate.op, self.arrays[i]
        axis, time = _row_axis(op, i, a), time_axes(op)[i]
        if axis is None or time is None:
            return a
        told = np.moveaxis(a.copy(), (axis, time), (0, 1))
        for row, end in enumerate(self.ends):
            first = self.steps - end if self._left else 0
            told[row] = np.roll(told[row], first, axis=0)
            if beyond is not None:
                told[row, :first] = told[row, first + end :] = beyond
        return np.array(np.moveaxis(told, (0, 1), (axis, time)), order="C")

    def _output(self, j: int, y, row: int):
        """The part of an output that belongs to one row."""
        dims = self.candidate.op.output_dims[j]
        return np.array(y[(slice(row, row + 1), *self._within(dims, row))], order="C")

    def _within(self, dims, row: int, *, beyond=False) -> tuple:
        """An index that keeps the steps of a row, or those beyond its end."""
        op, end = self.candidate.op, int(self.ends[row])
        if op.leading not in dims:
            return (...,)
        first = self.steps - end if self._left else 0
        window = slice(first, first + end)
        if beyond:
            window = slice(0, first) if self._left else slice(end, None)
        return ..., window, *(slice(None),) * (len(dims) - dims.index(op.leading) - 1)

    @property
    def _left(self) -> bool:
        return self.candidate.offer.padding == "left"


def _said(verdict: Verdict, row: int, end) -> Verdict:
    """The verdict with the row in its message."""
    told = f"row {row} of length {end}: {verdict.message}" if verdict.message else ""
    return replace(verdict, message=told)


def _row_axis(op: Operator, i: int, a) -> int | None:
    """The axis of rows of an argument, from the end; None if the rows share it."""
    axes = op.batch_axes[i]
    if op.rows not in axes:
        return None
    axis = axes.index(op.rows) - len(axes) - len(op.input_dims[i])
    return axis if a.ndim >= -axis else None


def _in_rows(op: Operator, i: int, a, rows: int):
    """An argument with a row of its own for each member, if it may have rows."""
    axes = op.batch_axes[i]
    if op.rows not in axes:
        return a
    rank = len(axes) + len(op.input_dims[i])
    a = a.reshape(*[1] * (rank - a.ndim), *a.shape)
    shape = [
        rows if axis == op.rows else n
        for axis, n in zip((*axes, *op.input_dims[i]), a.shape, strict=True)
    ]
    return np.array(np.broadcast_to(a, shape), order="C")
