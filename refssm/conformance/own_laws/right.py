"""What is right for a case: values, the allowed error of each entry, and the judge's verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from refssm._declaration.implements import unknown
from refssm._declaration.layout import Axes
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.allowed import Bounds, decided
from refssm.conformance.judging.expected import remembering
from refssm.conformance.judging.grading import HEADROOM, Grader
from refssm.conformance.judging.verdict import Verdict, kind_of, misfit, types_in
from refssm.conformance.number_types import judged_type
from refssm.conformance.own_laws.arguments import Arrays, OwnCall
from refssm.conformance.own_laws.drawn import DrawnCase
from refssm.conformance.usage_error import UsageError

GRADES = ("A", "B", "N", "C")


class _Results:
    """The outputs of a call, or its gradients: their names, axes, types, and what is expected."""

    def __init__(self, case: DrawnCase, cotangents: Any):
        self.call = call = _call_of(case)
        op, self.cotangents = call.op, None
        if cotangents is None:
            self.names = list(op.outputs)
            self.axes = list(zip(call.usual.outputs, call.own.outputs, strict=True))
            self.types = types_in(op, call.arrays, call.standard)
        else:
            self.cotangents = _cotangents(call, cotangents)
            kept = [i for i, name in enumerate(op.inputs) if name not in op.discrete]
            inputs = list(zip(call.usual.inputs, call.own.inputs, strict=True))
            self.names = [f"d{list(op.inputs)[i]}" for i in kept]
            self.axes = [inputs[i] for i in kept]
            precision = judged_type([*self.cotangents, *call.arrays])
            real = np.finfo(precision).dtype
            kinds = (precision if np.iscomplexobj(call.arrays[i]) else real for i in kept)
            self.types = tuple(map(np.dtype, kinds))
        self.gauges = call.gauges(self.cotangents)

    def told(self, arrays: Sequence[np.ndarray]) -> Any:
        """Arrays in the author's layout, as the operator returns outputs, or its VJP gradients."""
        axes = zip(arrays, self.axes, strict=True)
        own = [self.call.shown(a, usual, mine) for a, (usual, mine) in axes]
        if self.cotangents is not None:
            op, left = self.call.op, iter(own)
            return tuple(None if name in op.discrete else next(left) for name in op.inputs)
        return own[0] if len(own) == 1 else tuple(own)

    def read(self, given: Any) -> Arrays:
        """What a function returned, in the catalog's layout; ValueError for the wrong number."""
        call, op = self.call, self.call.op
        several = given if isinstance(given, tuple | list) else (given,)
        wanted = self.names
        if self.cotangents is not None:
            if len(several) == len(op.inputs):
                pairs = zip(several, op.inputs, strict=True)
                several = [g for g, name in pairs if name not in op.discrete]
            wanted = [f"d{name}" for name in op.inputs]
        if len(several) != len(self.names):
            what = "gradient" if self.cotangents is not None else "output"
            s = "s" * (len(wanted) > 1)
            raise ValueError(
                f"{op} has {len(wanted)} {what}{s} ({', '.join(wanted)}), got {len(several)}"
            )
        read = zip(several, self.names, self.axes, strict=True)
        return tuple(_carried(call, y, name, *axes) for y, name, axes in read)


def expected(case: DrawnCase, cotangents: Any) -> Any:
    """The values; see `refssm.testing.expected`."""
    with _said_by("expected"):
        results = _Results(case, cotangents)
        return results.told([gauge.value for gauge in results.gauges])


def bound(case: DrawnCase, y: Any, cotangents: Any, grade: str) -> Any:
    """The allowed errors; see `refssm.testing.bound`."""
    with _said_by("bound"):
        if grade not in GRADES:
            raise ValueError(unknown("grade", grade, GRADES))
        results = _Results(case, cotangents)
        op = results.call.op
        if op.contract.basis_free:
            why = "any basis of its outputs is right, so single entries have no allowed error"
            raise ValueError(f"{op}: {why}; `assert_right` compares what no basis changes")
        allowed = []
        told = zip(results.read(y), results.gauges, results.types, results.names, strict=True)
        either = any(t.kind == "c" for t in results.types)
        for a, gauge, kind, name in told:
            unfit = misfit(a, gauge.value.shape, kind, name, either) or _undefined(a, gauge, name)
            if unfit:
                raise ValueError(f"{op}: {unfit}")
            allowed.append(_allowed(results.call, a, gauge, grade))
        return results.told(allowed)


def assert_right(case: DrawnCase, y: Any, cotangents: Any) -> None:
    """AssertionError unless the judge passes it; see `refssm.testing.assert_right`."""
    __tracebackhide__ = True
    with _said_by("assert_right"):
        results = _Results(case, cotangents)
        read, call = results.read(y), results.call
        grader = Grader(call.op, call.standard)
        if results.cotangents is None:
            verdict = grader.outputs(call.arrays, read, results.gauges)
        else:
            with remembering(call.memory):  # it asks once more for what is expected
                verdict = grader.gradients(read, results.cotangents, call.arrays, call.statics)
    if not verdict.ok:
        raise AssertionError(_told(call, case, verdict))


@contextmanager
def _said_by(name: str) -> Iterator[None]:
    """Begin the sentence of a ValueError with the name of the function that raises it."""
    try:
        yield
    except (ValueError, UsageError) as error:
        raise ValueError(f"{name}: {error}") from None


def _call_of(case: DrawnCase) -> OwnCall:
    if not isinstance(case, DrawnCase):
        came = type(case).__name__
        raise ValueError(f"wanted a case that `refssm.testing.cases` drew, got {came}")
    return case._call


def _cotangents(call: OwnCall, given: Any) -> Arrays:
    """The cotangents in the catalog's layout, in the case's precision."""
    op = call.op
    if not op.differentiable:
        raise ValueError(f"{op} has no gradient")
    several = given if isinstance(given, tuple | list) else (given,)
    if len(several) != len(op.outputs):
        wanted = ", ".join(f"d{y}" for y in op.outputs)
        raise ValueError(
            f"{op}: wanted {len(op.outputs)} cotangents ({wanted}), got {len(several)}"
        )
    axes = zip(several, op.outputs, call.usual.outputs, call.own.outputs, strict=True)
    read = [_carried(call, d, f"d{name}", usual, own) for d, name, usual, own in axes]
    for d, name in zip(read, op.outputs, strict=True):
        if not isinstance(d, np.ndarray) or d.dtype.kind not in "fc":
            raise ValueError(f"{op}: `d{name}` must be an array of numbers, got {d!r}")
        if np.finfo(d.dtype).dtype != np.finfo(call.case.type.carrier).dtype:
            raise ValueError(
                f"{op}: `d{name}` has type {d.dtype}, the case is of {call.case.type.name}"
            )
    op.cotangents_fit(op.name, read, call.arrays, call.statics, op.output_types(*call.arrays))
    return tuple(read)


def _carried(call: OwnCall, y: Any, name: str, usual: Axes, own: Axes) -> Any:
    """A result in the catalog's layout; arrays of 16-bit numbers become float32."""
    if isinstance(y, np.generic):
        y = np.asarray(y)
    if not isinstance(y, np.ndarray):
        return y
    if call.case.type.half and y.dtype.name == call.case.type.name:
        y = y.astype(np.float32)
    return call.read(y, usual, own, f"{call.op}: `{name}`")


def _undefined(y: np.ndarray, gauge: Gauge, name: str) -> str:
    """The sentence about an entry that is NaN where a number is expected, or ""."""
    bad = np.argwhere((kind_of(y) == 2) & (kind_of(gauge.value) != 2))
    if not bad.size:
        return ""
    place = tuple(map(int, bad[0]))
    more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
    where = f"{name}[{', '.join(map(str, place))}]" if place else name
    return f"{where} is NaN, want {gauge.value[place]:.6g}{more}"


def _allowed(call: OwnCall, y: np.ndarray, gauge: Gauge, grade: str) -> np.ndarray:
    """The largest |ŷ − y| of each entry for a grade; infinite where nothing is judged."""
    standard = call.standard
    judged = np.isfinite(gauge.value) & np.isfinite(gauge.k0)
    if gauge.peak > min(standard.type.max, standard.computes.max) / HEADROOM:
        judged = np.zeros_like(judged)
    with np.errstate(all="ignore"):
        error = np.abs(y - gauge.value).astype(float)
        bounds = decided(gauge, standard, y.dtype, error, judged)
        return np.where(judged, _of_grade(bounds, grade), np.inf)


def _of_grade(bounds: Bounds, grade: str) -> np.ndarray:
    if grade == "A":
        return bounds.a
    if grade == "C":
        return np.maximum(bounds.own, bounds.c)
    if grade == "B" or bounds.n is None or bounds.too_large is None:
        return bounds.own
    return np.where(bounds.too_large, bounds.own, np.maximum(bounds.own, bounds.n))


def _told(call: OwnCall, case: DrawnCase, verdict: Verdict) -> str:
    """The judge's line, and the case."""
    order = f" (indices in the order {' '.join(call.usual.outputs[0])})" * bool(call.layout)
    return f"{call.op}: {verdict}{order}\n  {case!r}"
