"""Many members: those of an ordinary case eight times each, along every batch axis in turn.

Cases have few members, as their truth takes time. A kernel whose ninth head reads what the first
one should, or whose sum over heads ends after four, is right on all of them. The truth of a copy is
that of its member, so that many copies need no other.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.cotangents import cotangents_of
from refssm.conformance.checks.law import NOTHING, conduct
from refssm.conformance.judging.verdict import Verdict, misfit, worst_of, wrong

COUNT = 8  # a power of two: the gradient of what all copies share is divided exactly


@conduct(owed=lambda op: any(op.batch_axes))
def copies(candidate: Candidate, case: Case) -> Verdict:
    """Eight copies of each member of a batch, in any order, have the outputs of that member."""
    return _along_each_axis(candidate, case, Copied.values)


@conduct(owed=lambda op: any(op.batch_axes) and op.differentiable, of_gradient=True)
def summed(candidate: Candidate, case: Case) -> Verdict:
    """Eight copies of each member of a batch, in any order, have the gradients of that member; what
    all of them share has the sum of their gradients.
    """
    return _along_each_axis(candidate, case, Copied.gradients)


def _along_each_axis(candidate: Candidate, case: Case, judged: Callable) -> Verdict:
    """The worst verdict over the axes that have several members."""
    if candidate.sliced:
        return Verdict("-", notes=("the function takes arrays without batch axes only",))
    arrays, _ = candidate.given(case)
    shape, rng, verdicts = candidate.op.batch_shape(*arrays), case.generator(440), [NOTHING]
    for axis, members in enumerate(shape):
        if members > 1:
            mixed = rng.permutation(COUNT * members).reshape(COUNT, members)
            try:
                verdicts += judged(Copied(candidate, case, axis - len(shape), mixed))
            except Declined:
                continue  # it is for few members
    return worst_of(verdicts)


@dataclass(frozen=True)
class Copied:
    """The case with each member of one axis several times; copy c of member i is `places[c, i]`."""

    candidate: Candidate
    case: Case
    axis: int  # counted from the last batch axis: −1, −2, …
    places: np.ndarray

    def values(self) -> Iterator[Verdict]:
        """The verdicts on the outputs of all copies; raises Declined if it is for few members."""
        op, (arrays, statics) = self.candidate.op, self.candidate.given(self.case)
        ys = self.candidate.results(self._many(arrays, statics), statics)
        for copy in range(COUNT):
            pairs = zip(ys, op.output_dims, strict=True)
            one = tuple(self._taken(y, len(d), copy) for y, d in pairs)
            yield self._said(self.candidate.grader.value(arrays, statics, one)[0])

    def gradients(self) -> Iterator[Verdict]:
        """The verdicts on the gradients of all copies; raises Declined, too."""
        op, (arrays, statics) = self.candidate.op, self.candidate.given(self.case)
        many, (dy, _) = self._many(arrays, statics), cotangents_of(self.case, arrays, statics, ())
        cotangents = [
            self._spread(d, len(dims)) for d, dims in zip(dy, op.output_dims, strict=True)
        ]
        found = self.candidate.outputs([*cotangents, *many], statics, vjp=True)
        kept = [i for i, name in enumerate(op.inputs) if name not in op.discrete]
        for g, i in zip(found, kept, strict=True):
            if unfit := misfit(g, many[i].shape, many[i].dtype, f"d{[*op.inputs][i]}", either=True):
                raise Broken(wrong(unfit, kind="shape or type of a gradient"))
        for copy in range(COUNT):
            one = [
                self._taken(g, len(op.input_dims[i]), copy)
                if self._has(arrays[i], len(op.input_dims[i])) else np.asarray(g / COUNT)
                for g, i in zip(found, kept, strict=True)
            ]  # fmt: skip
            yield self._said(self.candidate.grader.gradients(one, dy, arrays, statics))

    def _many(self, arrays, statics) -> list[np.ndarray]:
        """The arguments with all copies."""
        given = zip(arrays, self.candidate.op.input_dims, strict=True)
        return self.candidate.admitted([self._spread(a, len(d)) for a, d in given], statics)

    def _has(self, a, rank: int) -> bool:
        """True if an array has the axis."""
        return a.ndim - rank >= -self.axis and a.shape[self.axis - rank] > 1

    def _spread(self, a, rank: int) -> np.ndarray:
        """An array with all copies; as it is without the axis."""
        if not self._has(a, rank):
            return a
        members = np.empty(self.places.size, int)
        members[self.places] = np.arange(self.places.shape[1])
        return np.ascontiguousarray(np.take(a, members, axis=self.axis - rank))

    def _taken(self, a, rank: int, copy: int) -> np.ndarray:
        """One copy of all members."""
        return np.take(a, self.places[copy], axis=self.axis - rank)

    def _said(self, verdict: Verdict) -> Verdict:
        """The verdict, which says how many members the axis had."""
        if not verdict.message:
            return verdict
        name = self.candidate.op.batch_names[self.axis]
        return replace(verdict, message=f"{name}={self.places.size}: {verdict.message}")
