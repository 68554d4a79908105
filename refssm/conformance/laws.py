"""Laws: what every implementation of an operator owes to its traits, without knowing the values.

A law takes a candidate and a case and returns a verdict. Zero input, scaling by powers of two and
exact integers are held bit by bit; the others compare two outputs of the same implementation
within the sum of their tolerances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from refssm._operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance.candidate import Broken, Candidate
from refssm.conformance.cases import Case
from refssm.conformance.damage import describe
from refssm.conformance.judge import (
    Verdict,
    compare,
    expect,
    grade_outputs,
    judged_type,
    kind_of,
    worst_of,
    wrong,
)
from refssm.conformance.gauge import Gauge

NOTHING = Verdict("-")
SMALL_STEPS = 2.0**10  # a grid on which sums of two draws are exact in every type
POWERS = (-20, -3, 1, 20)


def time_axes(op: Operator) -> list[int | None]:
    """For each input, its axis of the first output's first core dimension, from the end."""
    step = op.output_dims[0][0]
    return [dims.index(step) - len(dims) if step in dims else None for dims in op.input_dims]


def cut(op: Operator, arrays, window: slice) -> list[np.ndarray]:
    """The arguments restricted to a window of time; those without a time axis stay whole."""
    return [
        a if axis is None else a[(..., window, *(slice(None),) * (-axis - 1))]
        for a, axis in zip(arrays, time_axes(op), strict=True)
    ]


def in_window(op: Operator, y: np.ndarray, window: slice) -> np.ndarray:
    """The first output restricted to a window of time."""
    return y[(..., window, *(slice(None),) * (len(op.output_dims[0]) - 1))]


def same(op: Operator, arrays, y, other, *bounds) -> Verdict:
    """Two results of one implementation agree within the sum of their tolerances."""
    k = sum(b.k1 for b in bounds)
    gauge = Gauge(np.asarray(other), k, k, max(b.peak for b in bounds))
    return compare(y, gauge, judged_type(arrays), op.output_dims[0], op.outputs[0])


def windowed(op: Operator, gauge: Gauge, window: slice) -> Gauge:
    """A gauge restricted to a window of time."""
    fields = (in_window(op, f, window) for f in (gauge.value, gauge.k0, gauge.k1))
    return Gauge(*fields, gauge.peak)


def _points(case: Case, length: int) -> list[int]:
    """Where to cut: one place anywhere, and a multiple of 64 if there is one."""
    rng = case.generator(101)
    points = {int(rng.integers(1, length))} if length > 1 else set()
    blocks = (length - 1) // 64
    return sorted(points | ({64 * int(rng.integers(1, blocks + 1))} if blocks else set()))


def prefix(candidate: Candidate, case: Case) -> Verdict:
    """The outputs of a shorter input are the first outputs of the longer one."""
    op, arrays = candidate.op, candidate.arrays(case)
    (y,), (gauge,) = candidate.results(arrays, case.statics), expect(op, arrays)
    verdicts = [NOTHING]
    for k in _points(case, y.shape[-len(op.output_dims[0])]):
        short = cut(op, arrays, slice(0, k))
        (first,), (bound,) = candidate.results(short, case.statics), expect(op, short)
        whole = windowed(op, gauge, slice(0, k))
        kept = in_window(op, y, slice(0, k))
        verdicts.append(same(op, arrays, first, kept, bound, whole))
    return worst_of(verdicts)


def causal(candidate: Candidate, case: Case) -> Verdict:
    """Another future leaves the past as it was."""
    op, arrays = candidate.op, candidate.arrays(case)
    (y,), (gauge,) = candidate.results(arrays, case.statics), expect(op, arrays)
    verdicts = [NOTHING]
    for k in _points(case, y.shape[-len(op.output_dims[0])]):
        changed = [
            a if axis is None else _future_changed(a, axis, k)
            for a, axis in zip(arrays, time_axes(op), strict=True)
        ]
        changed = candidate.narrowed(changed)
        if not _same_past(op, arrays, changed, k):
            return NOTHING  # the implementation's own projection reads the future
        (other,) = candidate.results(changed, case.statics)
        past = slice(0, k)
        bound = windowed(op, gauge, past)
        verdicts.append(
            same(op, arrays, in_window(op, other, past), in_window(op, y, past), bound, bound)
        )
    return worst_of(verdicts)


def _future_changed(a, axis, k):
    """From time k on: half the modulus, the other sign, the order reversed."""
    a = np.moveaxis(a.copy(), axis, 0)
    a[k:] = -0.5 * a[k:][::-1]
    return np.ascontiguousarray(np.moveaxis(a, 0, axis))


def _same_past(op, arrays, changed, k):
    pasts = (cut(op, x, slice(0, k)) for x in (arrays, changed))
    return all(np.array_equal(a, b) for a, b in zip(*pasts, strict=True))


def split(candidate: Candidate, case: Case) -> Verdict:
    """A scan cut in two, the state carried by the `_from` form, is the scan in one piece."""
    op, arrays = candidate.op, candidate.arrays(case)
    (y,), (gauge,) = candidate.results(arrays, case.statics), expect(op, arrays)
    other = resumed(op)
    assert other is not None
    verdicts = [NOTHING]
    for k in _points(case, y.shape[-2]):
        later = slice(k, None)
        after = dict(zip(op.inputs, cut(op, arrays, later), strict=True))
        *driving, _state = other.inputs
        state = np.ascontiguousarray(in_window(op, y, slice(k - 1, k)).squeeze(-2))
        pieces = [*(after[name] for name in driving), state]
        (tail,) = candidate.results(pieces, case.statics, op=other)
        (bound,) = expect(other, pieces)
        kept, whole = in_window(op, y, later), windowed(op, gauge, later)
        verdicts.append(same(op, arrays, tail, kept, bound, whole))
    return worst_of(verdicts)


def resumed(op: Operator) -> Operator | None:
    """The operator that starts this one from a state: itself, or its `_from` form."""
    name = op.name.removesuffix("_from") + "_from"
    return next((other for other in OPERATORS if other.name == name), None)


def additive(candidate: Candidate, case: Case) -> Verdict:
    """f(x₁ + x₂) = f(x₁) + f(x₂) in the arguments in which the operator is linear."""
    op, arrays = candidate.op, candidate.arrays(case)
    verdicts = []
    for group in op.linear_in:
        first = [_on_grid(a) if n in group else a for n, a in zip(op.inputs, arrays, strict=True)]
        second = [
            _on_grid(_shuffled(a, case, i)) if n in group else a
            for i, (n, a) in enumerate(zip(op.inputs, arrays, strict=True))
        ]
        both = [
            p + q if n in group else p
            for n, p, q in zip(op.inputs, first, second, strict=True)
        ]
        ys = [candidate.results(x, case.statics)[0] for x in (both, first, second)]
        bounds = [expect(op, x)[0] for x in (both, first, second)]
        wide = ys[1].astype(np.result_type(ys[1], np.float64)) + ys[2]
        verdicts.append(same(op, arrays, ys[0], wide, *bounds))
    return worst_of(verdicts)


def _on_grid(a):
    """Rounded to multiples of 2^-10, so that the sum of two is exact."""
    return (np.round(a * SMALL_STEPS) / SMALL_STEPS).astype(a.dtype)


def _shuffled(a, case, stream):
    """The same entries in another order."""
    return case.generator(200 + stream).permutation(a.ravel()).reshape(a.shape)


def scaling(candidate: Candidate, case: Case) -> Verdict:
    """f(2^k x) = 2^k f(x), bit by bit: only exponents change."""
    op, arrays = candidate.op, candidate.arrays(case)
    (y,) = candidate.results(arrays, case.statics)
    power = int(case.generator(300).choice(POWERS))
    for group in op.linear_in:
        scaled = [
            np.ldexp(a, power) if n in group and not np.iscomplexobj(a)
            else (a * 2.0**power).astype(a.dtype) if n in group else a
            for n, a in zip(op.inputs, arrays, strict=True)
        ]  # fmt: skip
        (other,) = candidate.results(scaled, case.statics)
        wanted = (y * 2.0**power).astype(y.dtype)
        if other.shape != wanted.shape or not np.array_equal(other, wanted, equal_nan=True):
            return _inexact(op, other, wanted, f"inputs times 2^{power}: ")
    return Verdict("A")


def zero(candidate: Candidate, case: Case) -> Verdict:
    """Zero in, zero out, exactly."""
    op, arrays = candidate.op, candidate.arrays(case)
    for group in op.linear_in:
        nothing = [
            np.zeros_like(a) if n in group else a
            for n, a in zip(op.inputs, arrays, strict=True)
        ]
        (y,) = candidate.results(nothing, case.statics)
        if not np.array_equal(y, np.zeros_like(y)):
            return _inexact(op, y, np.zeros_like(y), "zero input: ")
    return Verdict("A")


def integers(op: Operator, arrays, y: np.ndarray, gauge: Gauge) -> Verdict | None:
    """Exact integers in, exact integers out; None where that does not apply or holds."""
    dtype = judged_type(arrays)
    if gauge.peak * 4 > 1 / np.finfo(dtype).eps or "transform" in op.traits:
        return None
    if any(not np.array_equal(p, np.round(p)) for p in (gauge.value, *arrays)):
        return None
    if np.array_equal(y, gauge.value):
        return None
    return _inexact(op, y, gauge.value, "exact integers: ")


def _inexact(op, y, wanted, what) -> Verdict:
    """A bit-by-bit law is broken: say where first."""
    if y.shape != wanted.shape:
        return wrong(f"{what}shape {y.shape}, want {wanted.shape}")
    bad = ~((y == wanted) | ((y != y) & (wanted != wanted)))
    i = tuple(int(j) for j in np.argwhere(bad)[0])
    place = f"{op.outputs[0]}{list(i)}"
    where = describe(bad, op.output_dims[0])
    return wrong(f"{what}{place}: got {y[i]:.9g}, want exactly {wanted[i]:.9g}; {where}")


def batch(candidate: Candidate, case: Case) -> Verdict:
    """Each member of a batch is what it is alone."""
    op, arrays = candidate.op, candidate.arrays(case)
    shape = op.batch_shape(*arrays)
    if candidate.sliced or not any(n > 1 for n in shape):
        return NOTHING
    (y,), (gauge,) = candidate.results(arrays, case.statics), expect(op, arrays)
    verdicts = []
    for axis, size in enumerate(shape):
        i = int(case.generator(400 + axis).integers(size))
        one = [_member(a, len(d), len(shape), axis, i) for a, d in zip(arrays, op.input_dims, strict=True)]
        (alone,), (bound,) = candidate.results(one, case.statics), expect(op, one)
        pick = (*(slice(None),) * axis, slice(i, i + 1))
        inside = Gauge(gauge.value[pick], gauge.k0[pick], gauge.k1[pick], gauge.peak)
        verdicts.append(same(op, arrays, y[pick], alone, bound, inside))
    return worst_of(verdicts)


def _member(a, rank, batch_rank, axis, i):
    """One member along a batch axis, kept as an axis of length 1; shared arrays stay."""
    own = a.ndim - rank - (batch_rank - axis)
    if own < 0 or a.shape[own] == 1:
        return a
    return np.ascontiguousarray(np.take(a, [i], axis=own))


def nan(candidate: Candidate, case: Case) -> Verdict:
    """NaN, infinity and poles come out where the formula puts them, and nowhere else."""
    op = candidate.op
    poisoned, what = _poison(op, case)
    poisoned = candidate.narrowed(poisoned)
    outputs = candidate.results(poisoned, case.statics)
    gauged = expect(op, poisoned, **case.statics)
    notes = ()
    if "pole" in what and case.dtype.kind == "c":
        outputs, notes = _either_infinity(outputs, gauged)
    verdict = grade_outputs(op, poisoned, outputs, gauged)
    message = verdict.message and f"with {what}: {verdict.message}"
    return replace(verdict, message=message, notes=(*verdict.notes, *notes))


def _either_infinity(outputs, gauged):
    """Complex x/0 is infinity in C's Annex G, NaN as x d*/|d|²: both are taken, finite is not."""
    fixed, notes = [], ()
    for y, gauge in zip(outputs, gauged, strict=True):
        loose = (kind_of(gauge.value) == 1) & (kind_of(y) == 2)
        fixed.append(np.where(loose, np.inf, y).astype(y.dtype))
        if loose.any():
            notes = ("a pole met exactly gives NaN, not infinity",)
    return tuple(fixed), notes


def _poison(op: Operator, case: Case) -> tuple[list[np.ndarray], str]:
    """One special value in one argument, and what it is: NaN, a pole, infinity, or overflow."""
    rng = case.generator(500)
    arrays = [a.copy() for a in case.arrays]
    names, domains = list(op.inputs), list(op.inputs.values())
    linear = [j for j, n in enumerate(names) if any(n in group for group in op.linear_in)]
    real = case.dtype.kind == "f"
    kinds = ["NaN", "NaN"]
    kinds += ["pole"] * 2 * any(d.meets for d in domains)
    # Complex infinities decay to NaN in an order that depends on the schedule: real types only.
    kinds += ["infinity"] * (real and bool(linear))
    kinds += ["overflow"] * (real and any(d.span for d in domains))
    kind = str(rng.choice(kinds))
    if kind == "overflow":
        grown = [_growing(d, a) for d, a in zip(domains, arrays, strict=True)]
        return grown, "a growing system of one sign"
    i = int(rng.choice(linear)) if kind == "infinity" else int(rng.integers(len(arrays)))
    if kind == "pole":
        i = next(j for j, d in enumerate(domains) if d.meets)
    place = tuple(int(rng.integers(n)) for n in arrays[i].shape)
    entry = f"{names[i]}[{', '.join(map(str, place))}]"
    if kind == "pole":
        poles = arrays[names.index(domains[i].meets)]
        arrays[i][place] = poles.flat[int(rng.integers(poles.size))]
        return arrays, f"{entry} at a pole"
    if kind == "NaN" and domains[i].span and place[-2] == 0:
        # a_0 multiplies the state before the first input: both readings of 0·NaN are in use
        return arrays, "no special value"
    arrays[i][place] = np.inf if kind == "infinity" else np.nan
    return arrays, f"{entry} = {kind}"


def _growing(domain, a):
    """Overflow with one sign throughout, so that no order of operations meets ∞ − ∞."""
    return np.full_like(a, 2.0 if domain.span else 1.0)


LAWS: dict[str, Callable[[Candidate, Case], Verdict]] = {
    "split": split,
    "nan": nan,
    "prefix": prefix,
    "additive": additive,
    "scaling": scaling,
    "zero": zero,
    "causal": causal,
    "batch": batch,
}


def laws_of(op: Operator) -> list[str]:
    """The laws that follow from an operator's traits, the most telling first."""
    needs = {
        "split": "state" in op.traits and resumed(op) is not None,
        "prefix": "causal" in op.traits,
        "causal": "causal" in op.traits,
        "additive": bool(op.linear_in),
        "scaling": bool(op.linear_in),
        "zero": bool(op.linear_in),
        "batch": any(op.batch_axes),
        "nan": "transform" not in op.traits,
    }
    return [name for name in LAWS if needs[name]]


def hold(name: str, candidate: Candidate, case: Case) -> Verdict:
    """Run one law; a call without a result is its verdict."""
    try:
        return LAWS[name](candidate, case)
    except Broken as broken:
        return broken.verdict
