"""Laws of batches: each member alone, and groups in another order."""

from dataclasses import replace

import numpy as np

from refssm.conformance.calling.candidate import Candidate
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.scaled import as_expected, comparable
from refssm.conformance.checks.law import NOTHING, law
from refssm.conformance.judging.verdict import Verdict, worst_of


@law(owed=lambda op: any(op.batch_axes))
def batch(candidate: Candidate, case: Case) -> Verdict:
    """Each member of a batch has the same outputs as when it is called alone."""
    op, (arrays, statics) = candidate.op, candidate.given(case)
    shape = op.batch_shape(*arrays)
    if candidate.sliced:
        return Verdict("-", notes=("the function takes arrays without batch axes only",))
    if not any(n > 1 for n in shape):
        return NOTHING
    ys, gauged = candidate.results(arrays, statics), candidate.grader.expect(arrays, statics)
    ys, verdicts = as_expected(op, ys, gauged), []
    for axis, size in enumerate(shape):
        i = int(case.generator(400 + axis).integers(size))
        one = [
            _member(a, len(d), len(shape), axis, i)
            for a, d in zip(arrays, op.input_dims, strict=True)
        ]
        one = candidate.admitted(one, statics)
        alone, bounds = candidate.results(one, statics), candidate.grader.expect(one, statics)
        pick = (*(slice(None),) * axis, slice(i, i + 1))
        alone = comparable(op, alone, [y[pick] for y in ys])
        for j, (y, g) in enumerate(zip(ys, gauged, strict=True)):
            inside = g.moved(lambda a, pick=pick: a[pick])
            told = candidate.grader.agree(arrays, y[pick], alone[j], bounds[j], inside, output=j)
            member = f"{op.batch_names[axis]}={i} alone: " if told.message else ""
            verdicts.append(replace(told, message=f"{member}{told.message}"))
    return worst_of(verdicts)


def _member(a, rank, batch_rank, axis, i):
    """One member along a batch axis, kept as an axis of length 1; arrays without that axis stay."""
    own = a.ndim - rank - (batch_rank - axis)
    if own < 0 or a.shape[own] == 1:
        return a
    return np.ascontiguousarray(np.take(a, [i], axis=own))


@law(owed=lambda op: "g" in op.batch_names)
def group(candidate: Candidate, case: Case) -> Verdict:
    """If the groups that share B and C are reordered, so are the outputs.

    Groups in reversed order give outputs in reversed order; each group has its own B and C.
    """
    op, (arrays, statics) = candidate.op, candidate.given(case)
    if case.batch["g"] < 2:
        return NOTHING
    ys, bounds = candidate.results(arrays, statics), candidate.grader.expect(arrays, statics)
    ys = as_expected(op, ys, bounds)
    turned = [
        np.ascontiguousarray(np.flip(a, len(a.shape) - len(d) - len(axes) + axes.index("g")))
        if "g" in axes else a
        for a, d, axes in zip(arrays, op.input_dims, op.batch_axes, strict=True)
    ]  # fmt: skip
    turned = candidate.admitted(turned, statics)
    verdicts, place = [], op.batch_names.index("g")
    others, limits = candidate.results(turned, statics), candidate.grader.expect(turned, statics)
    others = comparable(op, [np.flip(y, place) for y in others], ys)
    for j, (y, back) in enumerate(zip(ys, others, strict=True)):
        limit = limits[j].moved(lambda a: np.flip(a, place))
        verdicts.append(candidate.grader.agree(arrays, y, back, bounds[j], limit, output=j))
    return worst_of(verdicts)
