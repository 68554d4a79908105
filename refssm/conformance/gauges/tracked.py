"""Arrays that carry their rounding error: a value and two first-order bounds in units of u.

The judge runs the reference on these arrays. Each operation adds c roundings of its result to the
errors of its operands times |derivative|; the error of a complex number is one modulus (a disc
does not grow under rotation as a rectangle does). K0 starts from exact inputs: it bounds a
straightforward program. K1 starts from inputs that are off by one rounding each: it bounds a
backward stable program. One rounding is at least `floor`, the judged type's smallest normal number,
so the bounds include underflow.

K0 and K1 are the last axis of `errors`, so one NumPy call carries both. The rules for NumPy's
functions are in `rules.py` and in the files of operator families; a function without a rule raises
TypeError.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

UFUNCS: dict[Any, Callable[..., Any]] = {}
FUNCTIONS: dict[Any, Callable[..., Any]] = {}


@dataclass
class Trace:
    """Settings of one run of a reference, and the largest modulus it meets."""

    unit: float = 0.0  # u of the judged type; needed where products of errors count
    floor: float = 0.0
    peak: float = 0.0  # largest finite modulus of any intermediate
    partial: bool = False  # whether sums store the moduli of their partial sums, for a VJP


_trace = Trace()


class Tracked(NDArrayOperatorsMixin):
    """`value`, and `errors` (…, 2) = (k0, k1) with |computed − exact| ≤ u·k to first order.

    `parts` has the largest modulus of the partial sums that led to the value, in a run of a VJP;
    None means |value|.
    """

    __array_priority__ = 100
    __slots__ = ("errors", "parts", "value")

    def __init__(self, value, errors=None, parts=None):
        self.value = np.asarray(value)
        self.errors = np.zeros((*self.value.shape, 2)) if errors is None else errors
        self.parts = parts

    shape = property(lambda self: self.value.shape)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)
    dtype = property(lambda self: self.value.dtype)
    real = property(lambda self: Tracked(self.value.real, self.errors, self.parts))
    imag = property(lambda self: Tracked(self.value.imag, self.errors, self.parts))
    T = property(lambda self: moved(np.transpose, self))

    def __len__(self):
        return len(self.value)

    def __iadd__(self, other):
        """A new array: rules have no `out`. Whoever holds the old one keeps its value."""
        return self + other

    def __getitem__(self, index):
        parts = None if self.parts is None else self.parts[index]
        return Tracked(self.value[index], self.errors[_with_gauges(index)], parts)

    def __setitem__(self, index, other):
        other = lifted(other)
        if self.parts is not None or other.parts is not None:
            self.parts = largest_parts(self)
            self.parts[index] = largest_parts(other)
        self.value[index] = other.value
        self.errors[_with_gauges(index)] = other.errors

    def __array__(self, *args, **kwargs):
        raise TypeError("a tracked array met a function that has no error rule")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method != "__call__" or kwargs or ufunc not in UFUNCS:
            raise TypeError(f"no error rule for numpy.{ufunc.__name__} ({method})")
        return UFUNCS[ufunc](*map(lifted, inputs))

    def __array_function__(self, func, types, args, kwargs):
        if func not in FUNCTIONS:
            raise TypeError(f"no error rule for numpy.{func.__name__}")
        return FUNCTIONS[func](*args, **kwargs)

    def conj(self):
        """Complex conjugate: it has no rounding error."""
        return Tracked(self.value.conj(), self.errors, self.parts)

    conjugate = conj

    def copy(self):
        """A writable copy."""
        parts = None if self.parts is None else self.parts.copy()
        return Tracked(self.value.copy(), self.errors.copy(), parts)

    def reshape(self, *shape):
        """The same entries in another shape."""
        return moved(lambda a: a.reshape(*shape), self)

    def swapaxes(self, first, second):
        """The same entries with two axes exchanged."""
        return moved(lambda a: a.swapaxes(first, second), self)

    def astype(self, dtype, copy=True):
        """Cast the value to `dtype`; the errors do not change, as they are of the judged type."""
        del copy
        return Tracked(self.value.astype(dtype), self.errors, self.parts)

    def sum(self, axis=None, keepdims=False):
        """The sum as of numpy.sum, with the error of a balanced tree."""
        return FUNCTIONS[np.sum](self, axis=axis, keepdims=keepdims)


def _with_gauges(index):
    """The index into `errors`, which has one more axis, for an index into the values."""
    if not isinstance(index, tuple):
        return (index, slice(None)) if index is Ellipsis else index
    for i in index:  # `in` would compare arrays
        if i is Ellipsis:
            return (*index, slice(None))
    return index


def lifted(x) -> Tracked:
    """`x` as a tracked array; it has no error if it was not tracked."""
    return x if isinstance(x, Tracked) else Tracked(x)


def moved(function, x: Tracked) -> Tracked:
    """Apply `function`, which only moves entries, to the value, the errors and the parts."""
    errors = [function(x.errors[..., k]) for k in (0, 1)]
    parts = None if x.parts is None else function(x.parts)
    return Tracked(function(x.value), np.stack(errors, axis=-1), parts)


def largest_parts(x: Tracked) -> np.ndarray:
    """The largest moduli of the partial sums that made x; |x| if it is no sum."""
    return np.abs(x.value) if x.parts is None else x.parts


def summed(z: Tracked, *terms: Tracked) -> Tracked:
    """z, the sum of `terms`; stores the largest partial sums if the trace has `partial`."""
    if _trace.partial:
        z.parts = np.abs(z.value)
        for x in terms:
            z.parts = np.maximum(z.parts, largest_parts(x))
    return z


def multiplied(z: Tracked, x: Tracked, y: Tracked, charge) -> Tracked:
    """z = x y; if both factors have errors, parts of them may be multiplied before they are added.

    Automatic differentiation of a scan's tree does so with x_{k−1}* g_k, whose parts may cancel.
    Such a part is a sum over a range, the difference of two partial sums: at most twice the
    largest.
    """
    if not _trace.partial or (x.parts is None and y.parts is None):  # then |z| is the product
        return z
    z.parts = largest_parts(x) * largest_parts(y)
    computed = (x.errors[..., :1] > 0) & (y.errors[..., :1] > 0)
    more = 4 * np.maximum(z.parts - np.abs(z.value), 0.0)[..., None]
    return Tracked(z.value, z.errors + charge * np.where(computed, more, 0.0), z.parts)


def modulus(x):
    """|x|, at least the floor: the size of one rounding of x, in units of u."""
    size = np.abs(x)
    met(size)
    return np.maximum(size, least_rounding(x.dtype))


def least_rounding(dtype) -> float:
    """The least size of one rounding, in units of u: that of an underflow.

    Both parts of a complex number may underflow: 1.5 is at least √2.
    """
    return 1.5 * _trace.floor if dtype.kind == "c" else _trace.floor


def flushed() -> float:
    """The error, in units of u, of a number below the smallest normal that is replaced by 0."""
    return _trace.floor / _trace.unit if _trace.unit else 0.0


def trace() -> Trace:
    """The unit and the floor of this run."""
    return _trace


def jumped(size):
    """The error, in units of u, of a number that is right, or off by `size`."""
    return size / _trace.unit if _trace.unit else 0 * size


def met(size) -> None:
    """Update the largest finite modulus of the run."""
    largest = size.max(initial=0.0)
    if largest > _trace.peak or largest != largest:
        finite = largest if np.isfinite(largest) else size[np.isfinite(size)].max(initial=0.0)
        _trace.peak = max(_trace.peak, float(finite))


def scaled(x: Tracked, derivative):
    """The errors of operand x times the derivative, a modulus."""
    return derivative[..., None] * x.errors


def spread(x: Tracked):
    """|x| + u·k for k0 and k1: the largest modulus that the computed operand may have."""
    return np.abs(x.value)[..., None] + _trace.unit * x.errors


def rounded(value, charge, errors) -> Tracked:
    """`value` with `charge` roundings added to `errors`, the errors of its operands."""
    return Tracked(value, (charge * modulus(value))[..., None] + errors)


def without_digits(x: Tracked, result: Tracked) -> Tracked:
    """K = ∞ where u·error ≥ |x|/2: x may be zero, so 1/x, log and sqrt have no bound."""
    lost = (x.errors > 0) & (_trace.unit * x.errors >= (np.abs(x.value) / 2)[..., None])
    return Tracked(result.value, np.where(lost, np.inf, result.errors))


@contextmanager
def tracing(unit: float, floor: float, partial=False) -> Iterator[Trace]:
    """Context of one run of a reference with `unit` and `floor`; the trace collects the peak."""
    global _trace
    outer, _trace = _trace, Trace(unit=unit, floor=floor, partial=partial)
    try:
        with np.errstate(all="ignore"):
            yield _trace
    finally:
        _trace = outer
