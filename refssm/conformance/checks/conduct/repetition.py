"""Repetition: the same arguments twenty times give the same outputs, bit for bit.

Differences within tolerance are mistakes too, unless the author declares `deterministic=False`: a
result that changes from run to run cannot be debugged, and often comes from memory that is read
before it is written. Sums by atomic additions and by threads are the usual honest reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.sizes import MATRIX_SIZE, core_dims, of_matrices
from refssm.conformance.checks.candidate import Candidate
from refssm.conformance.checks.law import Conduct
from refssm.conformance.judging.verdict import Verdict, told_apart, worst_of
from refssm.conformance.number_types import NumberType

CALLS = 20
LONGER = (257, 256)  # several blocks or threads take part; the second for whole blocks only
SIDE = 16  # of the matrices of a longer input: the work is cubic in it
DECLARE = "if that is meant, as with atomic additions, declare deterministic=False"


def repeat(candidate: Candidate, case: Case) -> Verdict:
    """Twenty calls with the same input give the same outputs; also for a longer input."""
    verdict = _repeated(candidate, case, "")
    if not verdict.ok:
        return verdict
    for longer, at in _longer(candidate, case):
        try:
            return worst_of([verdict, _repeated(candidate, longer, at)])
        except Declined:  # this length is not supported
            continue
    return verdict


def _longer(candidate: Candidate, case: Case) -> Iterator[tuple[Case, str]]:
    """The case with more steps, or with a larger matrix, and its size in words."""
    op = candidate.op
    first = op.leading or core_dims(op)[0]
    sizes = (MATRIX_SIZE, MATRIX_SIZE - 1) if of_matrices(op, first) else LONGER
    _, high = candidate.between.get(first, (1, max(sizes)))
    free = [d for d in case.sizes if d not in op.parameters and d not in candidate.between]
    sides = {d: min(case.sizes[d], SIDE) for d in free if of_matrices(op, d)}
    for size in (min(size, int(high)) for size in sizes):
        if size > case.sizes[first] and first not in op.parameters:
            yield replace(case, sizes={**case.sizes, **sides, first: size}), f"at {first}={size} "


def _repeated(candidate: Candidate, case: Case, at: str) -> Verdict:
    arrays, statics = candidate.given(case)
    first, *later = [candidate.results(arrays, statics) for _ in range(CALLS)]
    differ = [ys for ys in later if not all(map(_same_bits, ys, first))]
    if not differ:
        return Verdict("A")
    told = f"{at}{len(differ)} of {len(later)} later calls differ from the first"
    verdict = _within_tolerance(candidate, arrays, statics, differ, first)
    if not verdict.ok:
        return replace(verdict, message=f"{told}: {verdict.message}")
    told += f", {_farthest(candidate.op.outputs, differ, first, case.type)}"
    if candidate.offer.deterministic:
        return replace(verdict, grade="F", ratio=np.inf, bits=0.0, message=f"{told}; {DECLARE}")
    return worst_of([verdict, Verdict("-", notes=(told,))])


def _within_tolerance(candidate: Candidate, arrays, statics, differ, first) -> Verdict:
    """The worst comparison of a later call with the first."""
    bounds = candidate.expect(arrays, statics)
    if candidate.op.contract.basis_free:  # outputs in another basis are right too
        firsts = tuple(replace(b, value=y) for b, y in zip(bounds, first, strict=True))
        return worst_of(candidate.graded(arrays, ys, firsts) for ys in differ)
    return worst_of(
        candidate.agree(arrays, y, other, bound, bound, output=j)
        for ys in differ
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


REPEAT = Conduct(
    name="repeat",
    sentence="Twenty calls with the same input give the same outputs, bit for bit; so do twenty "
    "with a longer input. If `deterministic=False` is declared, differences within tolerance are a "
    "note.",
    hold=repeat,
    without_arguments=True,
    between_calls=True,
)
