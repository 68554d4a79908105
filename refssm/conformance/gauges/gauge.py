"""What an output is judged by: the value, and how far a good program may be from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from refssm._arguments import several
from refssm._operator import Operator
from refssm.conformance.gauges import (  # noqa: F401  # importing them registers their rules
    dplr,
    hankel,
    hippo,
    hope,
    linalg,
    rules,
)
from refssm.conformance.gauges.tracked import Tracked, lifted, met, tracing


@dataclass(frozen=True)
class Measure:
    """How the error of a whole matrix is seen, where a contract is normwise."""

    name: str  # residual or error
    of: Callable[[np.ndarray], np.ndarray]  # one number for each member of the batch
    bound: np.ndarray  # the same, in units of u


@dataclass(frozen=True)
class Gauge:
    """An output's value, both error bounds in units of u, the largest modulus of the run."""

    value: np.ndarray
    k0: np.ndarray
    k1: np.ndarray
    peak: float
    measure: Measure | None = None  # judged by it; k0 and k1 then hold for differences of entries
    normwise: bool = False  # one bound for all of a slice: it may be beyond every value of it


Gauges = tuple[Gauge, ...]


@dataclass(frozen=True)
class Call:
    """One call of an operator or of its VJP, cotangents first, and what a rounding is in it."""

    op: Operator
    arrays: list[np.ndarray]
    statics: Mapping
    unit: float  # u of the judged type
    floor: float  # no rounding is less

    def tracked(self, program: Callable, arrays=None, partial=False) -> Gauges:
        """The errors of `program`, operation by operation."""
        arrays = self.arrays if arrays is None else arrays
        how = {"unit": self.unit, "floor": self.floor, "partial": partial}
        return gauges(program, *arrays, **how, **self.statics)


def gauges(reference, *arrays, unit: float, floor: float = 0.0, partial=False, **statics) -> Gauges:
    """One `Gauge` per output, from one run of `reference`; K0, K1 ≥ |y|: returning y rounds."""
    with tracing(unit, floor, partial) as trace:
        for a in arrays:
            met(np.abs(a * 1.0))
        y = reference(*map(_input, arrays), **statics)
        # None: an argument without a gradient
        outputs = (lifted(t) for t in several(y) if t is not None)
        return tuple(_gauge(t, trace.peak, floor) for t in outputs)


def _gauge(y: Tracked, peak: float, floor: float) -> Gauge:
    """K ≥ |y|, never below the floor, and an undefined bound (0·∞) is no bound."""
    least = np.maximum(np.abs(y.value), floor)[..., None]
    bounds = np.maximum(np.where(np.isnan(y.errors), np.inf, y.errors), least)
    return Gauge(y.value, bounds[..., 0], bounds[..., 1], peak)


def _input(array) -> Tracked | np.ndarray:
    """An input in double precision: exact for K0, off by one rounding for K1; flags as they are."""
    value = np.asarray(array)
    if value.dtype.kind == "b":
        return value
    value = value.astype(np.result_type(value, np.float64), copy=False)
    size = np.abs(value).astype(float)
    return Tracked(value, np.stack([np.zeros(value.shape), size], axis=-1))


def wide(arrays, precision: Any = np.float64) -> list[np.ndarray]:
    """`arrays` in at least `precision`; flags as they are."""
    return [
        a if a.dtype.kind == "b" else a.astype(np.result_type(a, precision), copy=False)
        for a in arrays
    ]
