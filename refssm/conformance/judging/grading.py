"""Grade one result of an implementation: |difference| / (u·K) for each entry, then a grade.

A: within K0, as of a straightforward program; B: within K1, as of a backward stable one; N: "right
in norm", as of differences of cumulative sums (`cancelling.py`); C: as of TF32 or float16
arithmetic; F: anything else. A, B and N pass.

Grade N, "right in norm": entries that cancel in differences of cumulative sums.

Such a program keeps the digits of the largest entries of a row of time, not those of entries that
are much smaller. Its bounds are those of the operator's cumulated form (`gauges/cumulated/`),
entry by entry; no entry borrows from another member of the batch, another head or channel.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import floor, log2

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.cases.scaled import as_expected
from refssm.conformance.gauges.gauge import Cumulated, Gauge
from refssm.conformance.judging.allowed import Bounds, decided, gross, least_size
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.invariants import grade_invariants
from refssm.conformance.judging.verdict import (
    BEYOND,
    CLASSES,
    Verdict,
    kind_of,
    misfit,
    says_nothing,
    told_apart,
    types_in,
    worst_of,
    wrong,
)
from refssm.conformance.judging.wrong_entries import (
    BETWEEN,
    BITS,
    OF_NORM,
    RATIO,
    Damage,
    axis_names,
    describe,
)
from refssm.conformance.judging.wrong_entries import CLASSES as OF_CLASS
from refssm.conformance.number_types import judged_type
from refssm.conformance.standard import HALF_PRECISION, Standard


def right_in_norm(error, value, bounds: Bounds, judged, standard: Standard, dims, notes) -> Verdict:
    """The verdict on an output whose errors are all within N, but not all within A or B.

    `error` is |ŷ − y| of each entry, and `dims` names its axes.
    """
    assert bounds.n is not None
    if says_nothing(value, bounds.n, judged):
        return Verdict("-", notes=(*notes, BEYOND))
    size, error = (np.where(judged, a, 0.0) for a in (np.abs(value).astype(float), error))
    with np.errstate(all="ignore"):
        ratio = np.where(error > 0, standard.room * error / bounds.n, 0.0)
        place = np.unravel_index(
            np.argmax(np.where(error > 0, error / bounds.own, 0.0)), error.shape
        )
    row = _row(error.shape, place, dims)
    largest, smallest = _right_bits(np.ravel(error[row]), np.ravel(size[row]), -log2(standard.u))
    bits = f"{smallest} bit" + "s" * (smallest != 1)
    message = f"cancels: {largest} bits of the largest entry of its row, {bits} of the smallest"
    return Verdict("N", float(ratio.max()), smallest, message, notes, allowed=standard.room)


def _row(shape, place, dims) -> tuple:
    """The index of the row of time through `place`; of its last axis if there is no time."""
    if not shape:
        return ()
    axis = dims.index("l") - len(dims) if "l" in dims else -1
    return tuple(slice(None) if i == axis % len(shape) else int(p) for i, p in enumerate(place))


def _right_bits(error, size, most: float) -> tuple[int, int]:
    """How many bits of a row's largest entry are right, and the fewest of any of its entries."""
    pairs = ((error.max(), size.max()), *zip(error, size, strict=True))
    largest, *others = (floor(_bits(e, s, most)) for e, s in pairs)
    return largest, min(others)


def _bits(error, size, most: float) -> float:
    """Right bits of a number of this size."""
    if not error:
        return most
    # the quotient of a subnormal number and a large error would be 0, which has no logarithm
    return min(most, max(0.0, log2(size) - log2(error))) if size else 0.0


HEADROOM = 2.0**10  # other programs may have that much larger intermediate results


@dataclass(frozen=True)
class Grader:
    """Grades the results of an implementation of `op` by its standard.

    Without a standard, by that of the arrays' type.
    """

    op: Operator
    standard: Standard | None = None

    def expect(self, arrays, statics, op: Operator | None = None) -> tuple[Gauge, ...]:
        """What a forward call should return, of another operator if one is given."""
        return expect(op or self.op, arrays, statics, standard=self.standard)

    def outputs(self, arrays, outputs, gauged, overflow=False, which=()) -> Verdict:
        """The verdict on the outputs of one call, or on those with indices in `which`."""
        return grade_outputs(self.op, arrays, outputs, gauged, overflow, self.standard, which)

    def value(self, arrays, statics, outputs, which=()) -> tuple[Verdict, tuple[Gauge, ...]]:
        """The verdict on the outputs of one call with indices in `which`, and all gauges."""
        gauged = expect(self.op, arrays, statics, standard=self.standard)
        return grade_outputs(self.op, arrays, outputs, gauged, False, self.standard, which), gauged

    def gradients(self, gradients, cotangents, arrays, statics, which=()) -> Verdict:
        """The worst verdict on the gradients of one VJP call, or on those of some arguments."""
        op = self.op
        gauged = expect(op, [*cotangents, *arrays], statics, op.bare_vjp, self.standard)
        precision = judged_type([*cotangents, *arrays])
        verdicts = []
        axes = [(*batch, *dims) for batch, dims in zip(op.batch_axes, op.input_dims, strict=True)]
        described = zip(op.inputs, axes, arrays, strict=True)
        described = [(name, dims, a) for name, dims, a in described if name not in op.discrete]
        for g, gauge, (name, dims, a) in zip(gradients, gauged, described, strict=True):
            if which and name not in which:
                continue
            kind = precision if np.iscomplexobj(a) else np.finfo(precision).dtype
            kind = np.dtype(kind)
            verdicts.append(compare(g, gauge, kind, dims, f"d{name}", standard=self.standard))
        return worst_of(verdicts)

    def agree(self, arrays, y, other, *bounds, output=0, through=False) -> Verdict:
        """Compare two outputs of this implementation: they may differ by the sum of their bounds.

        With `through`, one of them was computed from a state that was rounded to the type.
        """
        standard = self.standard
        if through and standard is not None and standard.u < standard.type.u:
            standard = replace(standard, computes=standard.type)
        return same(self.op, arrays, y, other, *bounds, output=output, standard=standard)


def compare(
    actual,
    gauge: Gauge,
    dtype,
    dims=(),
    name="y",
    product=0.0,
    overflow=False,
    either=False,
    standard: Standard | None = None,
) -> Verdict:
    """Grade one output against its gauge; `product` bounds |Π a| over any time span.

    Where intermediates may overflow, nothing is judged; with `overflow`, values above the type's
    maximum must be infinite. `standard` is the standard, by default that of the type.
    """
    unfit = misfit(actual, gauge.value.shape, dtype, name, either)
    if unfit:
        return wrong(unfit, kind=f"shape or type of `{name}`")
    standard = standard or Standard.of(dtype)
    notes = _wider(actual, dtype, name, standard)
    limit = standard.type.max if actual.dtype == dtype else float(np.finfo(actual.dtype).max)
    limit = limit if overflow else standard.type.max
    reach = min(
        limit, standard.computes.max
    )  # the arithmetic may have a smaller range than the type
    if max(gauge.peak, product) > reach / HEADROOM:
        if not overflow:
            return Verdict("-", notes=(*notes, "not judged: intermediate results may overflow"))
        gauge, undecided = _overflowing(gauge, limit, reach)
        with np.errstate(all="ignore"):
            actual = np.where(undecided, gauge.value, actual).astype(actual.dtype)
    classes = _compare_classes(actual, gauge.value, dims, name)
    if classes is not None:
        return classes
    if gauge.measure is None:
        return _compare_values(actual, gauge, standard, dims, name, notes)
    in_norm = _compare_norms(actual, gauge, standard, dims, name, notes)
    if not gauge.measured:
        return in_norm
    # a small residual allows large errors, and small errors a large residual
    return worst_of([in_norm, _compare_values(actual, gauge, standard, dims, name, notes)])


def _wider(actual, dtype, name, standard) -> tuple[str, ...]:
    """A note if the output's type is wider than the judged one."""
    if actual.dtype == dtype:
        return ()
    came = "" if standard.type.half else f"{actual.dtype}, "  # float64 arrays hold all wider types
    return (f"`{name}` is {came}wider than {standard.type.name if standard.type.half else dtype}",)


def _overflowing(gauge: Gauge, limit: float, reach: float) -> tuple[Gauge, np.ndarray]:
    """Expected values above the type's maximum become infinite; also a mask of entries not judged.

    The mask covers entries within a factor 2^10 of overflow.
    """
    with np.errstate(all="ignore"):
        size = np.abs(gauge.value)
        value = np.where(size > limit, np.copysign(np.inf, np.real(gauge.value)), gauge.value)
        near = (size > reach / HEADROOM) & (size <= limit)
        return replace(gauge, value=value), near


def _compare_classes(actual, wanted, dims, name) -> Verdict | None:
    """An F if NaN or infinity is at other entries than expected, else None."""
    got, want = kind_of(actual), kind_of(wanted)
    bad = got != want
    if not (np.iscomplexobj(wanted) or np.iscomplexobj(actual)):
        bad |= (want == 1) & (np.signbit(actual) != np.signbit(wanted))
    if not bad.any():
        return None
    i = tuple(int(j) for j in np.argwhere(bad)[0])
    place = f"{name}{list(i)}" if i else name
    return wrong(
        f"worst {place}: got {actual[i]:.6g} ({CLASSES[got[i]]}), want {CLASSES[want[i]]}; "
        f"{describe(bad, dims)}",
        Damage.where(name, bad, dims, OF_CLASS),
        f"NaN or infinity in `{name}`",
    )


def _compare_values(actual, gauge, standard: Standard, dims, name, notes) -> Verdict:
    """Grade the finite entries, once NaN and infinity agree."""
    u, room, value = standard.u, standard.room, gauge.value
    judged = np.isfinite(value) & np.isfinite(gauge.k0)
    if not judged.any():
        return Verdict("-" if value.size else "A", notes=notes)
    with np.errstate(all="ignore"):
        error = np.abs(actual - value).astype(float)
        bounds = decided(gauge, standard, actual.dtype, error, judged)
        scale = u * bounds.k0 + standard.u_out(actual.dtype) * least_size(gauge, standard) / room
        ratio = np.where(judged & (error > 0), error / scale, 0.0)
    grade = bounds.grade(error, judged)
    if grade in "AB":
        if gauge.normwise and says_nothing(value, bounds.a, judged):
            return Verdict("-", notes=(*notes, BEYOND))
        worst = float(ratio.max())
        return Verdict(grade, worst, right_bits(worst, u), notes=notes, allowed=room)
    beyond = bounds.beyond(error, judged)
    if bounds.n is not None:
        if not beyond.any():
            return right_in_norm(error, value, bounds, judged, standard, dims, notes)
        ratio = np.where(beyond, ratio, 0.0)
    worst = float(ratio.max())
    i = np.unravel_index(np.argmax(ratio), ratio.shape)
    place = f"{name}[{', '.join(map(str, i))}]" if i else name
    grade = "F" if gross(error, gauge, standard, beyond).any() else grade
    got, want = told_apart(actual[i], value[i])
    where = describe(beyond, dims)
    message = f"worst {place}: got {got}, want {want} ± {bounds.a[i]:.1e}; {where}"
    shown = np.where(judged, ratio, np.nan)
    damage = Damage(name, shown, axis_names(shown.ndim, dims), room)
    bits, kind = max(0.0, right_bits(worst, u)), f"values of `{name}`"
    return Verdict(grade, worst, bits, message, notes, allowed=room, damage=damage, kind=kind)


def right_bits(worst: float, u: float) -> float:
    """How many bits are right, if the largest error is `worst` times that of a good program."""
    return -np.log2(u) - (max(0.0, np.log2(worst)) if worst > 0 else 0.0)


def _compare_norms(actual, gauge: Gauge, standard: Standard, dims, name, notes) -> Verdict:
    """Grade whole matrices by the measure of their contract; most have no bound of grade B."""
    assert gauge.measure is not None
    u, room, measure = standard.u, standard.room, gauge.measure
    with np.errstate(all="ignore"):
        error = measure.of(actual)
        judged = np.isfinite(measure.bound) & (actual.size > 0)
        ratio, of_most = (
            np.where(judged & (error > 0), error / (u * bound), 0.0)
            for bound in (measure.bound, measure.most)
        )
    if not judged.any():
        return Verdict("-" if actual.size else "A", notes=notes)
    worst, least = float(ratio.max()), float(of_most.max())
    grade = "A" if worst <= room else "B" if least <= room else "C"
    grade = "F" if least > room * HALF_PRECISION / u else grade
    if grade in "AB":
        return Verdict(grade, worst, right_bits(worst, u), notes=notes, allowed=room)
    member = np.unravel_index(np.argmax(of_most), ratio.shape)[:-2]
    worst = float(ratio[(*member, 0, 0)])
    difference = np.abs(actual - gauge.value).astype(float)
    i = (*member, *np.unravel_index(np.argmax(difference[member]), actual.shape[-2:]))
    got, want = told_apart(actual[i], gauge.value[i])
    place, allowed = ", ".join(map(str, i)), room * u * measure.most[(*member, 0, 0)]
    size = f"{measure.name} {error[(*member, 0, 0)]:.2e} in norm, allowed {allowed:.1e}"
    where = describe(difference > difference[member].max() / 100, dims)
    message = f"worst {name}[{place}]: got {got}, want {want} ({size}); {where}"
    damage = None
    if measure.name != "residual":  # a residual does not belong to entries
        with np.errstate(all="ignore"):
            shown = np.where(judged, difference / (u * measure.bound), np.nan)
        damage = Damage(name, shown, axis_names(shown.ndim, dims), room, OF_NORM)
    bits, kind = max(0.0, right_bits(worst, u)), f"values of `{name}`"
    return Verdict(grade, worst, bits, message, notes, allowed=room, damage=damage, kind=kind)


def span_product(op: Operator, arrays) -> float:
    """Largest |Π a| over a span of time, for arguments that are multiplied along time."""
    largest = 0.0
    for domain, array in zip(op.inputs.values(), arrays, strict=True):
        if domain.span and array.size:
            size = np.abs(array.astype(complex))
            bits = np.log2(np.where(np.isfinite(size), np.maximum(size, 1e-300), 1.0))
            total = np.cumsum(bits, axis=-2)
            lowest = np.minimum(np.minimum.accumulate(total, axis=-2), 0)
            largest = max(largest, float(np.exp2(min(np.max(total - lowest), 1023.0))))
    return largest


def judge(op: Operator, candidate: Callable, *arrays: np.ndarray, **statics) -> Verdict:
    """Call `candidate` on `arrays` and grade what it returns, by the standard of their type."""
    gauged = expect(op, arrays, statics)
    y = candidate(*arrays, **statics)
    return grade_outputs(op, arrays, y if len(op.outputs) > 1 else (y,), gauged)


def grade_outputs(
    op: Operator,
    arrays,
    outputs,
    gauged,
    overflow=False,
    standard: Standard | None = None,
    which=(),
) -> Verdict:
    """Grade a tuple of outputs, or those with indices in `which`: the worst verdict."""
    if not isinstance(outputs, tuple) or len(outputs) != len(gauged):
        got = f"{len(outputs)} outputs" if isinstance(outputs, tuple) else type(outputs).__name__
        return wrong(f"returned {got}, want {len(gauged)} outputs", kind="number of outputs")
    outputs = as_expected(op, outputs, gauged)
    if op.contract.basis_free:
        return grade_invariants(op, outputs, gauged, standard or Standard.of(np.float64))
    types, product = types_in(op, arrays, standard), span_product(op, arrays)
    either = any(t.kind == "c" for t in types)
    axes = [(*op.batch_names, *dims) for dims in op.output_dims]
    told = list(zip(outputs, gauged, types, axes, op.outputs, strict=True))
    verdicts = []
    for y, gauge, dtype, dims, name in (told[j] for j in which or range(len(told))):
        verdict = compare(y, gauge, dtype, dims, name, product, overflow, either, standard)
        verdicts.append(verdict)
    return worst_of(verdicts)


WANTED, GAVE = re.compile(r"\), want (?=finite|infinite|NaN)"), "), the other call gave "


def same(op: Operator, arrays, y, other, *bounds, output=0, standard: Standard | None = None):
    """The verdict on two results of one implementation: they may differ by the sum of bounds."""
    of = standard or Standard.of(judged_type(arrays))
    returned = of.u_out(y.dtype) / (of.room * of.u)  # the rounding of the output, in u·K

    def summed(errors):
        rounded = (returned * np.maximum(np.abs(b.value), of.type.tiny) for b in bounds)
        both = (
            np.broadcast_to(e + r, np.shape(other)) for e, r in zip(errors, rounded, strict=True)
        )
        return np.sum([*both], axis=0)

    k = summed([b.k1 for b in bounds])
    forms = [b.cumulated for b in bounds if b.cumulated is not None]
    gauge = Gauge(np.asarray(other), k, k, max(b.peak for b in bounds))
    if len(forms) == len(bounds):
        gauge = replace(
            gauge,
            cumulated=Cumulated(
                lambda: k + summed([form.whole() for form in forms]),
                lambda: k + summed([form.of_terms() for form in forms]),
            ),
        )
    if any(b.more_copies for b in bounds):
        more = [b.more_copies or (lambda b=b: b.k1) for b in bounds]
        gauge = replace(gauge, more_copies=lambda: np.maximum(k, summed([k0() for k0 in more])))
    types, name = types_in(op, arrays, standard), op.outputs[output]
    dims = (*op.batch_names, *op.output_dims[output])
    either = any(t.kind == "c" for t in types)
    verdict = compare(y, gauge, types[output], dims, name, either=either, standard=standard)
    verdict = replace(verdict, message=WANTED.sub(GAVE, verdict.message))
    if verdict.damage is None or verdict.damage.unit != RATIO:
        return verdict
    return replace(verdict, damage=replace(verdict.damage, unit=BETWEEN))


def inexact(op, y, wanted, what, output=0, *, largest=False) -> Verdict:
    """The verdict on two results that should be equal bit by bit; names the first difference, or
    the largest one where small ones may be excused.
    """
    if y.shape != wanted.shape:
        kind = f"shape or type of `{op.outputs[output]}`"
        return wrong(f"{what}shape {y.shape}, want {wanted.shape}", kind=kind)
    bad = ~((y == wanted) | ((y != y) & (wanted != wanted)))
    with np.errstate(all="ignore"):
        apart = np.where(bad, np.nan_to_num(np.abs(y - wanted), nan=np.inf), -1.0)
    first = np.argmax(apart) if largest else np.argmax(bad)
    i = tuple(int(j) for j in np.unravel_index(int(first), bad.shape))
    place = f"{op.outputs[output]}{list(i)}"
    dims = (*op.batch_names, *op.output_dims[output])
    got, want = told_apart(y[i], wanted[i])
    message = f"{what}{place}: got {got}, want exactly {want}; {describe(bad, dims)}"
    name = op.outputs[output]
    return wrong(message, Damage.where(name, bad, dims, BITS), f"bits of `{name}`")
