"""How accurate an implementation is at the size at which it is timed: error in units of u·K0.

The truth is the reference in wider arithmetic with its bound K0, as the judge computes it. That
costs more than what is timed, so it is computed for the first member of each batch axis, and for
as long a beginning of the inputs as time and memory allow. A row says which.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from refssm._declaration.operator import Operator
from refssm.bench.measuring.timing import available, peak_of
from refssm.bench.work.inputs import beginning, cotangents, of_batch
from refssm.bench.work.sizes import Size
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.judging.expected import expect
from refssm.conformance.judging.grading import compare, grade_outputs
from refssm.conformance.judging.verdict import worst_of
from refssm.conformance.number_types import judged_type
from refssm.conformance.usage_error import UsageError

SECONDS = 8.0  # for the truth of one operator at one size
FIRST = 256  # the first length that is tried
MEMORY = 3  # the truth may take a third of what is free


@dataclass(frozen=True)
class Accuracy:
    """The largest error in units of u·K0, correct bits, and the error relative to the largest
    entry of its output."""

    ratio: float
    bits: float
    relative: float | None
    at: str  # which part of the inputs


class Truth:
    """What an operator gives on a part of the inputs, with the bounds of the errors."""

    def __init__(
        self,
        op: Operator,
        arrays,
        statics: Mapping,
        size: Size,
        vjp: bool,
        seconds: float = SECONDS,
    ):
        self.op, self.size, self.vjp = op, size, vjp
        self.count, self.seconds = len(op.outputs) if vjp else 0, seconds
        self.arrays, self.statics = of_batch(op, arrays, {}), dict(statics)
        self.gauged: tuple[Gauge, ...] = ()
        self.at = "one member of each batch axis" if size.batch else ""

    def compute(self, clock: Callable[[], float] = time.perf_counter) -> bool:
        """Compute it for the longest beginning that is affordable; False if none is."""
        full = self.size.core.get("l", 0)
        lengths = [l for l in (FIRST << k for k in range(20)) if l < full]
        left, whole = self.seconds, (self.arrays, self.statics)
        for l in [*lengths, full]:
            part = whole if l == full else beginning(self.op, *whole, l)
            begun = clock()
            try:
                used = peak_of(lambda part=part: self._gauge(*part))
                if used is None:
                    self._gauge(*part)
            except (UsageError, MemoryError):  # double precision has no wider type at this size
                break
            took = clock() - begun
            left, used, self.at = left - took, used or 0, self._where(l, full)
            # four times: the truth of a transform is a direct sum
            if 4 * took > left or 4 * used > available() / MEMORY:
                break
        return bool(self.gauged)

    def _gauge(self, primals, statics) -> None:
        op = self.op
        heads = cotangents(op, self.size, primals, statics) if self.vjp else []
        arrays = [*heads, *primals]
        with np.errstate(all="ignore"):
            self.gauged = expect(op, arrays, statics, op.bare_vjp if self.vjp else None)
        self.arrays, self.statics = arrays, statics

    def _where(self, l: int, full: int) -> str:
        whole = "one member of each batch axis" if self.size.batch else "all of it"
        return whole if l == full else f"{whole}, l={l}"

    def accuracy(self, outputs) -> Accuracy:
        """The accuracy of the outputs of an implementation on `self.arrays`."""
        op = self.op
        if self.vjp:
            verdict = worst_of(self._graded(outputs))
        else:
            verdict = grade_outputs(op, self.arrays, outputs, self.gauged)
        return Accuracy(verdict.ratio, verdict.bits, _relative(outputs, self.gauged), self.at)

    def _graded(self, gradients):
        """The verdict on each gradient, as the judge's check of gradients gives it."""
        precision, primals = judged_type(self.arrays), self.arrays[self.count :]
        named = [(n, a) for n, a in zip(self.op.inputs, primals, strict=True)
                 if n not in self.op.discrete]  # fmt: skip
        for g, gauge, (name, a) in zip(gradients, self.gauged, named, strict=True):
            kind = np.dtype(precision if np.iscomplexobj(a) else np.finfo(precision).dtype)
            yield compare(g, gauge, kind, ("",) * a.ndim, f"d{name}")


def _relative(outputs, gauged) -> float:
    """The largest error of an output, divided by its largest entry."""
    worst = 0.0
    for y, gauge in zip(outputs, gauged, strict=True):
        if y.size:
            largest = float(np.abs(gauge.value).max())
            error = float(np.abs(y - gauge.value).max())
            worst = max(worst, error / largest if largest else error)
    return worst
