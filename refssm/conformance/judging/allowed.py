"""How large the errors of one output may be for each grade: decided here, once for each result."""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.standard import HALF_PRECISION, Standard

GROSS = 100  # where more than two digits are usual, an error in the second one is wrong
MORE = 64.0  # times a bound: errors beyond are not measured on more copies, if digits are there


@dataclass(frozen=True)
class Bounds:
    """For each grade, the largest |ŷ − y| of each entry of an output."""

    k0: np.ndarray  # the error of a straightforward program in units of u: it gives A and the ratio
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    n: np.ndarray | None = None  # of grade N, where it was asked for and the operator has one
    too_large: np.ndarray | None = None  # entries whose error is no cancellation, whatever `n` says

    @property
    def own(self) -> np.ndarray:
        """The larger one of the bounds of A and B."""
        return np.maximum(self.a, self.b)

    def grade(self, error, judged) -> str:
        """The best of the grades A, B, C and F whose bound holds for all `judged` entries."""
        told = (("A", self.a), ("B", self.b), ("C", self.c))
        return next((g for g, bound in told if not exceeds(error, bound, judged).any()), "F")

    def beyond(self, error, judged) -> np.ndarray:
        """The entries whose errors are beyond A, B and N."""
        if self.n is None or self.too_large is None:
            return judged & ~((error <= self.a) | (error <= self.b))
        return self.too_large | exceeds(error, self.n, judged)


def exceeds(error, bound, judged) -> np.ndarray:
    """The judged entries whose error is larger than the bound, or NaN."""
    return judged & ~(error <= bound)


def decided(gauge: Gauge, standard: Standard, dtype, error, judged) -> Bounds:
    """The bounds by which the `error` |ŷ − y| of an output of type `dtype` is graded.

    What takes longer is asked for only where an error is beyond the bounds before: K0 from more
    copies of the case, where K0 is measured; the derived K1; and the bounds of grade N.
    """
    bounds = bounds_of(gauge, standard, dtype)
    if not exceeds(error, bounds.a, judged).any():
        return bounds
    # a result that cancels to less than its roundings has no size: a few programs may all give 0
    with_digits = judged & (np.abs(gauge.value) > standard.u * gauge.k0)
    if gauge.more_copies and not exceeds(error, MORE * bounds.a, with_digits).any():
        # more copies may explain the errors: the largest rise seen is 21-fold
        gauge = gauge.looser()
        bounds = bounds_of(gauge, standard, dtype)
    if gauge.measured and exceeds(error, bounds.a, judged).any():
        bounds = bounds_of(gauge.derived(), standard, dtype)
    if bounds.grade(error, judged) in "AB":
        return bounds
    return _with_cancelling(bounds, gauge, standard, error, judged)


def bounds_of(gauge: Gauge, standard: Standard, dtype) -> Bounds:
    """The bounds of A, B and C for an output of type `dtype`, as the gauge has them."""
    u, room = standard.u, standard.room
    rounding = standard.u_out(dtype) * least_size(gauge, standard)
    # K1 is infinite where one rounding of an input may make an operand 0: then K0 judges alone
    k1 = np.where(np.isfinite(gauge.k1), gauge.k1, gauge.k0)
    a = room * u * gauge.k0 + rounding
    if gauge.measured:  # the derived bound hides what is bad
        most = np.maximum(room * u * k1, room * HALF_PRECISION * gauge.k0)
        return Bounds(gauge.k0, a, a, most + rounding)
    b, c = room * u * k1 + rounding, room * HALF_PRECISION * k1 + rounding
    return Bounds(gauge.k0, a, b, c)


def least_size(gauge: Gauge, standard: Standard) -> np.ndarray:
    """|y|, at least the smallest normal number: below it, rounding errors stay the same size."""
    return np.maximum(np.abs(gauge.value).astype(float), standard.type.tiny)


def _with_cancelling(bounds: Bounds, gauge: Gauge, standard: Standard, error, judged) -> Bounds:
    """The bounds with that of grade N, "right in norm"; as they are if there is none.

    Arithmetic of 11 bits or fewer has no N: its cumulative sums have no digits. Kernels for 16-bit
    types sum in single precision, and may declare it.
    """
    if gauge.cumulated is None or not standard.normwise or standard.u >= HALF_PRECISION:
        return bounds
    n = _of_cumulated(gauge.cumulated.whole(), bounds, gauge, standard)
    large = gross(error, gauge, standard, exceeds(error, bounds.own, judged))
    if np.iscomplexobj(gauge.value):
        most = np.maximum(bounds.own, _half_the_digits(gauge, standard))
        large |= exceeds(error, most, judged)
    if large.any():
        # a program whose sums of logarithms are exact may lose as much: its terms alone cancel
        large &= ~(error <= _of_cumulated(gauge.cumulated.of_terms(), bounds, gauge, standard))
    return replace(bounds, n=n, too_large=large)


def _of_cumulated(k0: np.ndarray, bounds: Bounds, gauge: Gauge, standard: Standard) -> np.ndarray:
    """The bound of the cumulated form with this K0, at least those of A and B."""
    with np.errstate(all="ignore"):
        more = standard.room * standard.u * (k0 - gauge.k0)
        # the form has no bound after a decay of 0
        allowed = bounds.a + np.where(np.isfinite(more), more, 0.0)
    allowed = np.maximum(allowed, bounds.own)
    if not standard.type.half:
        return allowed
    # a result that float16 holds as a subnormal number: to flush it to zero is no cancellation
    size = np.abs(gauge.value)
    return np.where((size > 0) & (size < standard.type.tiny), bounds.own, allowed)


def gross(error, gauge: Gauge, standard: Standard, beyond) -> np.ndarray:
    """Those of the entries `beyond` whose error exceeds a hundredth of the largest value.

    Such an error is no lack of precision, unless the type itself has few digits.
    """
    if standard.u >= HALF_PRECISION:
        return np.zeros_like(beyond)
    largest = _largest(gauge)
    return beyond & ~(error <= largest / GROSS) if largest > 0 else np.zeros_like(beyond)


def _half_the_digits(gauge: Gauge, standard: Standard) -> float:
    """The error of the largest entry with half of its digits.

    With complex decays the cumulated form adds up angles, of hundreds of turns in a long row, and
    has no digits left: an error of 1 % would be right in norm. Few programs compute so.
    """
    return sqrt(standard.u) * _largest(gauge)


def _largest(gauge: Gauge) -> float:
    """The largest finite modulus of the expected values."""
    return np.abs(gauge.value).max(initial=0.0, where=np.isfinite(gauge.value))
