"""What an output is judged by: the value, and how far a good program may be from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from refssm._arguments import several
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


def gauges(
    reference, *arrays, unit: float, floor: float = 0.0, partial=False, **statics
) -> tuple[Gauge, ...]:
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
