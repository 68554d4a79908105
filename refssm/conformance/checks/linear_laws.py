"""Laws of linear operators: sums, powers of two, zero; and exact integers."""

from __future__ import annotations

import numpy as np

from refssm._operator import Operator
from refssm.conformance.cases.case import Case
from refssm.conformance.checks.candidate import Candidate
from refssm.conformance.checks.law import Law
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.agreement import inexact
from refssm.conformance.judging.expected import judged_type
from refssm.conformance.judging.verdict import Verdict, worst_of
from refssm.conformance.standard import Standard

SMALL_STEPS = 2.0**10  # multiples of 2^-10: sums of two draws are exact in most types
POWERS = (-20, -3, 1, 20)


def linear(op: Operator) -> bool:
    """True if an output is linear in some of the arguments."""
    return bool(op.linear_in)


def linear_arguments(op: Operator) -> set[str]:
    """Names of the arguments in which an output is linear."""
    return {name for group, _ in op.linear_in for name in group}


def additive(candidate: Candidate, case: Case) -> Verdict:
    """f(x₁ + x₂) = f(x₁) + f(x₂) in the arguments in which the operator is linear."""
    op, (arrays, statics) = candidate.op, candidate.given(case)
    verdicts = []
    for group, outputs in op.linear_in:
        first = [_on_grid(a) if n in group else a for n, a in zip(op.inputs, arrays, strict=True)]
        second = [
            _on_grid(_shuffled(a, case, i)) if n in group else a
            for i, (n, a) in enumerate(zip(op.inputs, arrays, strict=True))
        ]
        both = [
            p + q if n in group else p for n, p, q in zip(op.inputs, first, second, strict=True)
        ]
        ys = [candidate.results(x, statics) for x in (both, first, second)]
        gauged = [candidate.expect(x, statics) for x in (both, first, second)]
        for j in outputs:
            wide = ys[1][j].astype(np.result_type(ys[1][j], np.float64)) + ys[2][j]
            verdicts.append(
                candidate.agree(arrays, ys[0][j], wide, *(g[j] for g in gauged), output=j)
            )
    return worst_of(verdicts)


def _on_grid(a):
    """Rounded to multiples of 2^-10, so that the sum of two is exact."""
    return (np.round(a * SMALL_STEPS) / SMALL_STEPS).astype(a.dtype)


def _shuffled(a, case, stream):
    """The same entries in another order."""
    return case.generator(200 + stream).permutation(a.ravel()).reshape(a.shape)


ADDITIVE = Law(
    name="additive",
    sentence="Where the operator is linear, the output of a sum is the sum of the outputs, "
    "within tolerance.",
    hold=additive,
    owed=linear,
    tame=True,
    touches=linear_arguments,
    halves=("float16", "bfloat16"),  # their sums of inputs would be rounded
)


def scaling(candidate: Candidate, case: Case) -> Verdict:
    """f(2^k x) = 2^k f(x), bit by bit, because only exponents change.

    Only within tolerance where the contract's `scales_exactly` is false: the number of squarings of
    an exponential may depend on the whole norm, and states may underflow where only a norm is
    judged.
    """
    op, (arrays, statics) = candidate.op, candidate.given(case)
    ys = candidate.results(arrays, statics)
    power = int(case.generator(300).choice(POWERS))
    verdicts = [Verdict("A")]
    for group, outputs in op.linear_in:
        scaled = [
            np.ldexp(a, power) if n in group and not np.iscomplexobj(a)
            else (a * 2.0**power).astype(a.dtype) if n in group else a
            for n, a in zip(op.inputs, arrays, strict=True)
        ]  # fmt: skip
        others = candidate.results(scaled, statics)
        for j in outputs:
            y, other = ys[j], others[j]
            wanted = (y * 2.0**power).astype(y.dtype)
            if not op.contract.scales_exactly:
                bounds = [_scaled(candidate.expect(arrays, statics)[j], 2.0**power)]
                bounds.append(candidate.expect(scaled, statics)[j])
                verdicts.append(candidate.agree(scaled, other, wanted, *bounds, output=j))
            elif other.shape != wanted.shape or not np.array_equal(other, wanted, equal_nan=True):
                return inexact(op, other, wanted, f"inputs times 2^{power}: ", j)
    return worst_of(verdicts)


def _scaled(gauge: Gauge, factor: float) -> Gauge:
    return Gauge(gauge.value * factor, gauge.k0 * factor, gauge.k1 * factor, gauge.peak)


SCALING = Law(
    name="scaling",
    sentence="Where the operator is linear, input times a power of two gives output times that "
    "power, bit by bit.",
    hold=scaling,
    owed=linear,
    tame=True,
    touches=linear_arguments,
    halves=("float16",),  # float16 has few exponents
)


def zero(candidate: Candidate, case: Case) -> Verdict:
    """Zero input gives zero output, exactly."""
    op, (arrays, statics) = candidate.op, candidate.given(case)
    for group, outputs in op.linear_in:
        nothing = [
            np.zeros_like(a) if n in group else a for n, a in zip(op.inputs, arrays, strict=True)
        ]
        ys = candidate.results(nothing, statics)
        for j in outputs:
            if not np.array_equal(ys[j], np.zeros_like(ys[j])):
                return inexact(op, ys[j], np.zeros_like(ys[j]), "zero input: ", j)
    return Verdict("A")


ZERO = Law(
    name="zero",
    sentence="Where the operator is linear, zero input gives zero output, bit by bit.",
    hold=zero,
    owed=linear,
    tame=True,
    touches=linear_arguments,
)


def integers(candidate: Candidate, arrays, y: np.ndarray, gauge: Gauge) -> Verdict | None:
    """A failure if integers should give exact results and do not, else None."""
    op, held = candidate.op, candidate.held or Standard.of(judged_type(arrays))
    if not of_integers(op, held, arrays, gauge) or np.array_equal(y, gauge.value):
        return None
    return inexact(op, y, gauge.value, "exact integers: ")


def of_integers(op: Operator, held: Standard, arrays, gauge: Gauge) -> bool:
    """True if arguments, results and all intermediates are integers exact in the type."""
    too_large = gauge.peak * 8 > 1 / max(held.u, held.type.u)
    if too_large or not op.contract.follows_each_operation:
        return False
    return all(np.array_equal(p, np.round(p)) for p in (gauge.value, *arrays))
