"""Laws of linear operators: sums, powers of two, zero; and exact integers."""

from dataclasses import replace

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.calling.candidate import Broken, Candidate
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.cases.case import Case
from refssm.conformance.cases.scaled import as_expected, comparable
from refssm.conformance.checks.law import NOTHING, law
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.grading import inexact
from refssm.conformance.judging.verdict import Verdict, worst_of
from refssm.conformance.number_types import judged_type
from refssm.conformance.standard import Standard

SMALL_STEPS = 2.0**10  # multiples of 2^-10: sums of two draws are exact in most types
POWERS, FAR, BEYOND = (-20, -3, 1, 20), (-20, 20), (-60, 60)
OF_LOGARITHMS = (
    "inputs times powers of two, and exact integers, are right within rounding, not bit by bit: "
    "so are programs that take logarithms, and those whose equal calls differ"
)


def linear(op: Operator) -> bool:
    """True if an output is linear in some of the arguments."""
    return bool(op.linear_in)


def linear_arguments(op: Operator) -> set[str]:
    """Names of the arguments in which an output is linear."""
    return {name for group, _ in op.linear_in for name in group}


@law(
    owed=linear,
    tame=True,
    touches=linear_arguments,
    halves=("float16", "bfloat16"),  # their sums of inputs would be rounded
)
def additive(candidate: Candidate, case: Case) -> Verdict:
    """Where the operator is linear, the output of a sum is the sum of the outputs, within
    tolerance.

    f(x₁ + x₂) = f(x₁) + f(x₂).
    """
    op, (arrays, statics) = candidate.op, candidate.given(case)
    verdicts = [NOTHING]
    for group, outputs in op.linear_in:
        part = 0.5 if any(op.inputs[n].holds for n in group) else 1  # as half of a key, and half
        first = [
            _on_grid(a) * a.dtype.type(part) if n in group else a
            for n, a in zip(op.inputs, arrays, strict=True)
        ]
        second = [
            _on_grid(_shuffled(a, case, i)) * a.dtype.type(part) if n in group else a
            for i, (n, a) in enumerate(zip(op.inputs, arrays, strict=True))
        ]
        both = [
            p + q if n in group else p for n, p, q in zip(op.inputs, first, second, strict=True)
        ]
        if not all(map(candidate.inside, (first, second, both))):
            continue
        first, second, both = (candidate.admitted(x, statics) for x in (first, second, both))
        ys = [candidate.results(x, statics) for x in (both, first, second)]
        gauged = [candidate.grader.expect(x, statics) for x in (both, first, second)]
        ys = [as_expected(op, y, gauged[0]) for y in ys]
        for j in outputs:
            wide = ys[1][j].astype(np.result_type(ys[1][j], np.float64)) + ys[2][j]
            verdicts.append(
                candidate.grader.agree(arrays, ys[0][j], wide, *(g[j] for g in gauged), output=j)
            )
    return worst_of(verdicts)


def _on_grid(a):
    """Rounded to multiples of 2^-10, so that the sum of two is exact."""
    return (np.round(a * SMALL_STEPS) / SMALL_STEPS).astype(a.dtype)


def _shuffled(a, case, stream):
    """The same entries in another order."""
    return case.generator(200 + stream).permutation(a.ravel()).reshape(a.shape)


@law(
    owed=linear,
    tame=True,
    touches=linear_arguments,
    halves=("float16",),  # float16 has few exponents
)
def scaling(candidate: Candidate, case: Case) -> Verdict:
    """Where the operator is linear, input times a power of two gives output times that power, bit
    by bit.

    f(2^k x) = 2^k f(x), because only exponents change. One power of each case is of ±20: what a
    program takes as zero, or cuts off, is seen there.

    Only within tolerance where the contract's `scales_exactly` is false: the number of squarings of
    an exponential may depend on the whole norm, and states may underflow where only a norm is
    judged. A program that takes logarithms rounds them; it must also be right for much larger and
    much smaller powers.
    """
    op, (arrays, statics) = candidate.op, candidate.given(case)
    ys = candidate.results(arrays, statics)
    powers, verdicts = _powers(case), [NOTHING]
    for group, outputs in op.linear_in:
        inside = candidate.inside(_times(op, group, arrays, max(powers)))  # else a key of norm 1
        for power in powers if inside else sorted({-abs(power) for power in powers}):
            scaled = _times(op, group, arrays, power)
            if not candidate.inside(scaled):
                continue
            verdicts.append(Verdict("A"))
            others = candidate.results(candidate.admitted(scaled, statics), statics)
            others = comparable(op, others, ys)
            for j in outputs:
                if not op.contract.scales_exactly:
                    told = _near(candidate, arrays, scaled, statics, ys[j], others[j], power, j)
                elif _equal(others[j], ys[j], power):
                    continue
                elif _of_logarithms(candidate, arrays, statics, ys, group, j, (power, *BEYOND)):
                    told = Verdict("A", notes=(OF_LOGARITHMS,))
                else:
                    what = f"inputs times 2^{power}: "
                    return inexact(op, others[j], _wanted(ys[j], power), what, j, largest=True)
                verdicts.append(told)
    return worst_of(verdicts)


def _powers(case: Case) -> list[int]:
    """One of all powers, and a far one beside if that is near."""
    drawn = int(case.generator(300).choice(POWERS))
    return [drawn] if drawn in FAR else [drawn, int(case.generator(301).choice(FAR))]


def _times(op: Operator, group, arrays, power: int) -> list[np.ndarray]:
    """The arguments, those of the group times 2^power."""
    return [
        np.ldexp(a, power) if n in group and not np.iscomplexobj(a)
        else (a * 2.0**power).astype(a.dtype) if n in group else a
        for n, a in zip(op.inputs, arrays, strict=True)
    ]  # fmt: skip


def _wanted(y, power: int):
    return (y * 2.0**power).astype(y.dtype)


def _equal(other, y, power: int) -> bool:
    """True if `other` is y times 2^power, bit by bit."""
    return other.shape == y.shape and np.array_equal(other, _wanted(y, power), equal_nan=True)


def _near(candidate, arrays, scaled, statics, y, other, power, j, more=1.0) -> Verdict:
    """The verdict on one output for scaled inputs, within `more` times the tolerances."""
    plain, moved = (candidate.grader.expect(x, statics)[j] for x in (arrays, scaled))
    bounds = [replace(g, k1=more * g.k1) for g in (_scaled(plain, 2.0**power), moved)]
    return candidate.grader.agree(scaled, other, _wanted(y, power), *bounds, output=j)


def _of_logarithms(candidate: Candidate, arrays, statics, ys, group, j: int, powers) -> bool:
    """True if output j scales with these powers of two as far as rounded logarithms allow.

    The logarithm of 2^k x is k ln 2 larger than that of x, and its rounding is a relative error of
    the result. What is added to inputs, or cut off, is of another size than these powers.
    """
    op = candidate.op
    if op.contract.needs_no_value or not op.contract.scales_exactly:
        return False
    for power in powers:
        scaled, more = _times(op, group, arrays, power), 1 + abs(power) * np.log(2)
        if not candidate.inside(scaled):
            continue
        try:
            others = candidate.results(candidate.admitted(scaled, statics), statics)
        except Declined:
            continue
        others = comparable(op, others, ys)
        told = _near(candidate, arrays, scaled, statics, ys[j], others[j], power, j, more)
        if not told.ok or others[j].shape != ys[j].shape:
            return False
    return True


def _scaled(gauge: Gauge, factor: float) -> Gauge:
    return gauge.moved(lambda a: a * factor)


@law(owed=linear, tame=True, touches=linear_arguments)
def zero(candidate: Candidate, case: Case) -> Verdict:
    """Where the operator is linear, zero input gives zero output, bit by bit."""
    op, (arrays, statics) = candidate.op, candidate.given(case)
    verdict = NOTHING
    for group, outputs in op.linear_in:
        nothing = [
            np.zeros_like(a) if n in group else a for n, a in zip(op.inputs, arrays, strict=True)
        ]
        if not candidate.inside(nothing):
            continue
        verdict = Verdict("A")
        ys = candidate.results(candidate.admitted(nothing, statics), statics)
        for j in outputs:
            if not np.array_equal(ys[j], np.zeros_like(ys[j])):
                return inexact(op, ys[j], np.zeros_like(ys[j]), "zero input: ", j)
    return verdict


def integers(candidate: Candidate, arrays, statics, ys, gauge: Gauge) -> Verdict | None:
    """A failure if integers should give an exact first output and do not, a note, or None.

    Programs that take logarithms cannot be exact; they are those that also scale within rounding
    only.
    """
    op, standard = candidate.op, candidate.standard or Standard.of(judged_type(arrays))
    if not of_integers(op, standard, arrays, gauge) or np.array_equal(ys[0], gauge.value):
        return None
    try:
        rounded = any(
            0 in outputs and _rounds(candidate, arrays, statics, ys, group)
            for group, outputs in op.linear_in
        )
    except Broken:
        rounded = False
    if rounded:
        return Verdict("A", notes=(OF_LOGARITHMS,))
    return inexact(op, ys[0], gauge.value, "exact integers: ")


def _rounds(candidate: Candidate, arrays, statics, ys, group) -> bool:
    """True if some power of two of this group gives other bits, and all are within rounding."""
    for power in POWERS:
        scaled = _times(candidate.op, group, arrays, power)
        if not candidate.inside(scaled):
            continue
        try:
            others = candidate.results(candidate.admitted(scaled, statics), statics)
        except Declined:
            continue
        if not _equal(others[0], ys[0], power):
            return _of_logarithms(candidate, arrays, statics, ys, group, 0, (power, *BEYOND))
    return False


def of_integers(op: Operator, standard: Standard, arrays, gauge: Gauge) -> bool:
    """True if arguments, results and all intermediates are integers exact in the type."""
    too_large = gauge.peak * 8 > 1 / max(standard.u, standard.type.u)
    if too_large or not op.contract.follows_each_operation:
        return False
    return all(np.array_equal(p, np.round(p)) for p in (gauge.value, *arrays))
