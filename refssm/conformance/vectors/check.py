"""Judge an implementation by stored vectors: no oracle runs, the tolerances are the judge's.

Files of vectors are validated too; if asked, every number is computed again by both oracles.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks.checks import VECTORS
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.result import Result
from refssm.conformance.judging.verdict import Verdict, worst_of
from refssm.conformance.running.first_calls import first_calls
from refssm.conformance.running.own_faults import guarded
from refssm.conformance.standard import Standard
from refssm.conformance.usage_error import UsageError
from refssm.conformance.vectors.document import Vector, Vectors, hexadecimal
from refssm.conformance.vectors.draw import drawn_again, planted
from refssm.conformance.vectors.making import certified
from refssm.conformance.vectors.reading import read


def judged(worker, target: str, given: list[Vectors]) -> Iterator[Result]:
    """One result per implementation and type; skipped if there are no vectors of its operator."""
    by_name: dict[str, Vectors] = {}
    for vectors in given:  # several files may have the same operator
        known = by_name.get(vectors.op.name)
        more = [*known.cases, *vectors.cases] if known else vectors.cases
        by_name[vectors.op.name] = replace(vectors, cases=more)
    for offer in worker.found:
        vectors = by_name.get(offer.name)
        if not offer.judged:
            continue
        if vectors is None or offer.absent:
            reason = offer.absent or "there are no vectors of this operator"
            yield Result(offer.name, target, VECTORS.name, "-", "skipped", message=reason)
            continue
        yield from _OneOperator(worker, offer, target, vectors).results()


class _OneOperator:
    """One implementation and the vectors of its operator."""

    def __init__(self, worker, offer: Offer, target, vectors: Vectors):
        self.offer, self.target, self.vectors = offer, target, vectors
        self.op = vectors.op
        self.candidate = Candidate(self.op, worker, offer)

    def results(self) -> Iterator[Result]:
        """The results, in the order in which the file has the types."""
        types = list(dict.fromkeys(case.dtype for case in self.vectors.cases))
        declared = [t for t in types if not self.offer.dtypes or t in self.offer.dtypes]
        if not declared:
            own, stored = ", ".join(self.offer.dtypes), ", ".join(types)
            listed = f"declared only for {own}, vectors are in {stored}"
            yield self._result(types[0], "skipped", message=listed)
            return
        ordinary = {t: ordinary_case(self.op, t) for t in declared}
        refused = first_calls(self.candidate, ordinary).refused
        for dtype in declared:
            others = any(not text for text in refused.values())
            if refused.get(dtype) and others and not self.offer.dtypes:
                message = f"{dtype} is not accepted: {refused[dtype]}"
                yield self._result(dtype, "skipped", message=message)
            else:
                failed = partial(self._result, dtype, "error")
                yield guarded(partial(self._judged, dtype), failed)

    def _judged(self, dtype: str) -> Result:
        cases = [case for case in self.vectors.cases if case.dtype == dtype]
        candidate, started = self.candidate.judged_in(dtype), time.perf_counter()
        told: list[tuple[Vector, Verdict]] = []
        declined = 0
        for case in cases:
            try:
                told.append((case, verdict_of(candidate, case)))
            except Declined:
                declined += 1
        if not told:
            return self._result(dtype, "skipped", message=f"declined all {declined} cases")
        worst = worst_of(verdict for _, verdict in told)
        message, hint = self._said(told, worst)
        return replace(
            self._result(dtype, worst.verdict, message=message),
            grade="-" if worst.error else worst.grade,
            ratio=worst.ratio,
            bits=worst.bits,
            examples=len(cases),
            declined=declined,
            seconds=time.perf_counter() - started,
            notes=worst.notes,
            sliced=candidate.sliced or self.offer.loops,
            allowed=self.offer.accuracy.C,
            digits=Standard.of(dtype, self.offer.accuracy).computes.digits,
            hint=hint,
        )

    def _said(self, told, worst: Verdict) -> tuple[str, str]:
        """Message and hint: the limits of a pass; the failing cases of a failure and their bugs."""
        bad = [(case, verdict) for case, verdict in told if not verdict.ok]
        if not bad:
            return "", f"not tested: any other cases than these {len(told)}"
        first = bad[0][0]
        names = ", ".join(case.name for case, _ in bad)
        shown = "; ".join(f"{name} ({what})" for name, what in first.catches.items())
        hint = f"failing: {names}" + (f"; {first.name} shows the bug {shown}" if shown else "")
        return worst.message, hint

    def _result(self, dtype: str, verdict: str, message: str) -> Result:
        names = self.op.name, self.target, VECTORS.name, dtype
        return Result(*names, verdict, message=message)


def verdict_of(candidate: Candidate, case: Vector) -> Verdict:
    """Grade one call by the stored outputs; Declined if `only` changes the case."""
    arrays, statics = case.arrays, dict(case.statics)
    try:
        kept, told = candidate.narrowed(arrays, statics)
        if told != statics or not all(map(np.array_equal, kept, arrays)):
            raise Declined  # the stored outputs do not fit other arguments
        y = candidate.outputs(arrays, statics)
    except Broken as broken:
        return broken.verdict
    return candidate.grader.outputs(arrays, y, _with_flushed(candidate, case))


def _with_flushed(candidate: Candidate, case: Vector) -> tuple[Gauge, ...]:
    """The stored bounds; if subnormals may be flushed, plus the largest error from flushing."""
    standard = candidate.standard
    if standard is None or not standard.ftz:
        return case.gauges
    return tuple(
        replace(g, k0=g.k0 + standard.copied, k1=g.k1 + standard.copied) for g in case.gauges
    )


def sound(path: Path, thorough: bool) -> Vectors:
    """The vectors of a file; UsageError with one sentence if anything is wrong."""
    vectors = read(path)
    known = {bug.name: bug.what for bug in planted(vectors.op)}
    for i, case in enumerate(vectors.cases):
        for name, what in case.catches.items():
            if known.get(name) != what:
                wanted = f"{known[name]!r}" if name in known else f"a planted bug of {vectors.op}"
                raise UsageError(
                    f"{path}: cases[{i}].catches.{name}: wanted {wanted}, got {what!r}"
                )
        if thorough:
            _recomputed(path, vectors, i, case)
    return vectors


def _recomputed(path: Path, vectors: Vectors, i: int, case: Vector) -> None:
    """UsageError if an output differs from the oracles' or a bound from the computed one."""
    drawn = drawn_again(vectors.op, case.dtype, case.arrays, case.statics)
    if drawn is None:
        raise UsageError(f"{path}: cases[{i}]: wanted inputs that can be judged, got others")
    again = certified(drawn)
    for name, stored, wanted in zip(vectors.op.outputs, case.outputs, again.outputs, strict=True):
        pairs = {f: (stored.values[f], wanted.values[f]) for f in wanted.values}
        pairs |= {"k0": (stored.k0, wanted.k0), "k1": (stored.k1, wanted.k1)}
        for key, (came, right) in pairs.items():
            flat = [np.atleast_1d(a).ravel().view(float) for a in (came, right)]
            differ = np.flatnonzero(flat[0] != flat[1])
            if differ.size:
                j = int(differ[0])
                came, right = (hexadecimal(float(a[j])) for a in flat)
                place = f"{path}: cases[{i}].outputs.{name}.{key}[{j}]"
                raise UsageError(f"{place}: wanted {right}, got {came}")
