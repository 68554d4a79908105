"""The gauge of an output: the reference's value and how far a good program may be from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from refssm._declaration.arguments import several
from refssm._declaration.operator import Operator
from refssm.conformance.gauges import (  # noqa: F401  # importing them registers their rules
    dplr,
    hankel,
    hippo,
    hope,
    layers,
    linalg,
    recurrences,
    rules,
)
from refssm.conformance.gauges.tracked import Tracked, lifted, met, tracing


@dataclass(frozen=True)
class Measure:
    """One error and one bound per matrix of a batch, for contracts that bound a norm."""

    name: str  # "residual" or "error"
    of: Callable[[np.ndarray], np.ndarray]  # the error of an output, shape (…, 1, 1)
    bound: np.ndarray  # the bound in units of u, same shape
    backward: np.ndarray | None = None  # of programs that are backward stable only: grade B

    @property
    def most(self) -> np.ndarray:
        """The larger bound."""
        return self.bound if self.backward is None else np.maximum(self.bound, self.backward)


@dataclass(frozen=True)
class Cumulated:
    """K0 of the cumulated form (`cumulated/`), worked out when it is asked for."""

    whole: Callable[[], np.ndarray]
    of_terms: Callable[[], np.ndarray]  # as if the sums of logarithms were exact

    def moved(self, change: Callable[[np.ndarray], np.ndarray]) -> Cumulated:
        """The same of entries that `change` chooses or moves."""
        return Cumulated(lambda: change(self.whole()), lambda: change(self.of_terms()))


@dataclass(frozen=True)
class KnownBound:
    """A derived bound that is already there; as an array it can be kept on disk."""

    k1: np.ndarray

    def __call__(self) -> np.ndarray:
        return self.k1


@dataclass(frozen=True)
class Gauge:
    """The value of an output, its bounds k0 and k1 in units of u, and the run's largest modulus."""

    value: np.ndarray
    k0: np.ndarray
    k1: np.ndarray
    peak: float
    measure: Measure | None = None  # if given, verdicts use it; k0, k1 bound single entries
    normwise: bool = False  # one bound for a whole slice, maybe larger than all its values
    # where k0 was measured: makes k1, the derived bound, which takes longer
    derive: Callable[[], np.ndarray] | None = field(default=None, compare=False, repr=False)
    # where k0 was measured: makes it once more, from many more copies of the case
    more_copies: Callable[[], np.ndarray] | None = field(default=None, compare=False, repr=False)
    cumulated: Cumulated | None = None  # of an operator whose sums may be differences of sums

    @property
    def measured(self) -> bool:
        """True if k0 was measured, and k1 is not the derived bound."""
        return self.derive is not None

    def looser(self) -> Gauge:
        """The gauge with the larger k0 of many more copies, asked for before a result is refused.

        It is the gauge itself if k0 was not measured.
        """
        if self.more_copies is None:
            return self
        k0 = self.more_copies()
        return replace(self, k0=k0, k1=np.maximum(self.k1, k0))

    def derived(self) -> Gauge:
        """The gauge with the derived bound as k1, where k0 was measured."""
        return replace(self, k1=self.derive()) if self.derive is not None else self

    @property
    def derived_k1(self) -> np.ndarray | None:
        """The derived bound, if k0 was measured and the derived bound is there without delay."""
        return self.derive.k1 if isinstance(self.derive, KnownBound) else None

    def moved(self, change: Callable[[np.ndarray], np.ndarray]) -> Gauge:
        """The same bounds of entries that `change` chooses or moves."""
        cumulated, more_copies = self.cumulated, self.more_copies
        return Gauge(
            change(self.value),
            change(self.k0),
            change(self.k1),
            self.peak,
            cumulated=None if cumulated is None else cumulated.moved(change),
            more_copies=None if more_copies is None else lambda: change(more_copies()),
        )


Gauges = tuple[Gauge, ...]


@dataclass(frozen=True)
class TrackedCall:
    """A call of an operator or of its VJP (cotangents first); u and floor of the judged type."""

    op: Operator
    arrays: list[np.ndarray]
    statics: Mapping
    unit: float  # u of the judged type
    floor: float  # the least error of one rounding
    values: Sequence[np.ndarray] | None = None  # the results in double precision, if known

    def tracked(self, program: Callable, arrays=None, partial=False) -> Gauges:
        """Run `program` on tracked arrays: one gauge per output."""
        arrays = self.arrays if arrays is None else arrays
        how = {"unit": self.unit, "floor": self.floor, "partial": partial}
        return gauges(program, *arrays, **how, **self.statics)


def gauges(reference, *arrays, unit: float, floor: float = 0.0, partial=False, **statics) -> Gauges:
    """Run `reference` once on tracked arrays: one `Gauge` per output.

    Both bounds are at least |y|, because storing y rounds it once.
    """
    with tracing(unit, floor, partial) as trace:
        for a in arrays:
            met(np.abs(a * 1.0))
        y = reference(*map(as_input, arrays), **statics)
        # a VJP returns None for an argument without a gradient
        outputs = (lifted(t) for t in several(y) if t is not None)
        return tuple(_gauge(t, trace.peak, floor) for t in outputs)


def _gauge(y: Tracked, peak: float, floor: float) -> Gauge:
    """Bounds at least |y| and at least the floor; an undefined bound (0·∞) becomes infinite."""
    least = np.maximum(np.abs(y.value), floor)[..., None]
    bounds = np.maximum(np.where(np.isnan(y.errors), np.inf, y.errors), least)
    return Gauge(y.value, bounds[..., 0], bounds[..., 1], peak)


def as_input(array) -> Tracked | np.ndarray:
    """An input in double precision: exact for K0, off by one rounding for K1; flags stay flags."""
    value = np.asarray(array)
    if value.dtype.kind in "bi":
        return value
    value = value.astype(np.result_type(value, np.float64), copy=False)
    size = np.abs(value).astype(float)
    return Tracked(value, np.stack([np.zeros(value.shape), size], axis=-1))


def wide(arrays, precision: Any = np.float64) -> list[np.ndarray]:
    """`arrays` in at least `precision`; arrays of flags stay as they are."""
    return [
        a if a.dtype.kind in "bi" else a.astype(np.result_type(a, precision), copy=False)
        for a in arrays
    ]
