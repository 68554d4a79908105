"""NumPy: arrays as they are, and views of them; the other adapters change what differs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from refssm.conformance.number_types import NumberType


@dataclass(frozen=True)
class Unusable:
    """Stands for an output that is no numeric array, or one that NumPy cannot hold."""

    type: str


class NoDevice(Exception):
    """The device asked for is not there."""


class Numpy:
    """NumPy's arrays. `device` is refused: there is one memory."""

    name = "numpy"
    immutable = False
    lacks = ("bfloat16",)

    def __init__(self, device: str = ""):
        if device not in ("", "cpu"):
            raise NoDevice(f"{self.name} has no device {device!r}")
        self.device = device
        self.views = dict(VIEWS)

    def about(self) -> str:
        """Version, device and flags, for the header; numpy's version stands there anyway."""
        tiny = np.full(8, np.finfo(np.float32).tiny, np.float32)
        half = tiny * np.float32(0.5)  # a library built with -ffast-math may have set the flag
        flushed = "no" if (half + half == tiny).all() else "yes"
        return f"numpy arrays, device cpu, flush to zero: {flushed}"

    def inside(self, kind: NumberType) -> AbstractContextManager:
        """What must be set while a call in this type runs."""
        del kind
        return nullcontext()

    def give(self, a: np.ndarray, kind: NumberType, view: str = "") -> Any:
        """`a` as the framework's own array, of `kind`, seen through a view."""
        return self.views[view](cast(a, kind))

    def take(self, y: Any, kind: NumberType) -> np.ndarray | Unusable:
        """A result as a native contiguous NumPy array, or the name of its type."""
        if not isinstance(y, np.ndarray) and hasattr(y, "__array__"):
            y = np.asarray(y)
        if not isinstance(y, np.ndarray) or y.dtype.kind not in "biufc":
            return Unusable(f"array of {y.dtype}" if isinstance(y, np.ndarray) else named(y))
        y = np.array(y, dtype=y.dtype.newbyteorder("="), order="C", subok=False)
        return carried(y, y.dtype.name, kind)

    def copied(self, x: Any) -> Any:
        """A copy with memory of its own."""
        return x.copy()

    def share(self, x: Any, y: Any) -> bool:
        """Whether two arrays lie in the same memory."""
        if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
            return False
        return x.size > 0 and y.size > 0 and np.may_share_memory(x, y)

    def same(self, x: Any, y: Any) -> bool:
        """Bitwise equality, NaN equal to itself."""
        return np.array_equal(x, y, equal_nan=True)

    def pullback(self, function, cotangents, primals, statics) -> tuple:
        """The gradients of the framework's own autodiff, in our convention."""
        raise NotImplementedError(f"{self.name} has no autodiff")


def cast(a: np.ndarray, kind: NumberType) -> np.ndarray:
    """`a` in float16 where that is judged, flags as they are; NumPy has no bfloat16."""
    if kind.name == "bfloat16":
        raise TypeError("NumPy has no bfloat16")
    return a.astype(np.float16) if kind.name == "float16" and a.dtype.kind != "b" else a


def named(y) -> str:
    """The name of a type, for a sentence."""
    return type(y).__name__


def carried(y: np.ndarray, name: str, kind: NumberType) -> np.ndarray | Unusable:
    """A result of the type called `name`, where `kind` was judged.

    Where a 16-bit type is judged, float32 carries its values and float64 those of wider types.
    """
    if not kind.half:
        return Unusable(f"{name} array") if name == "bfloat16" else y
    if name == kind.name:
        return y.astype(np.float32)
    if y.dtype.kind != "f" or name in ("float16", "bfloat16"):
        return Unusable(f"{name} array")
    return y.astype(np.float64)


def _strided(a):
    """Every other entry of a wider array, along the last axis."""
    wide = np.empty((*a.shape[:-1], 2 * a.shape[-1]), a.dtype) if a.ndim else a.copy()
    if a.ndim:
        wide[..., ::2] = a
        wide[..., 1::2] = np.nan
    return wide[..., ::2] if a.ndim else wide


def _reversed(a):
    """Negative strides on every axis."""
    flip = (slice(None, None, -1),) * a.ndim
    # not ascontiguousarray, which gives scalars an axis
    return np.array(a[flip], order="C")[(*flip, ...)]


def _transposed(a):
    """Column-major memory."""
    return np.array(a, order="F")


def _with_offset(a):
    """Contiguous, one element into a larger buffer: aligned to the element and no more."""
    buffer = np.full(a.size + 1, np.nan, a.dtype)
    buffer[1:] = a.ravel()
    return buffer[1:].reshape(a.shape)


def repeated(a):
    """For each axis whether it holds one value throughout."""
    return [n > 1 and bool((np.take(a, [0], axis=i) == a).all()) for i, n in enumerate(a.shape)]


def _expanded(a):
    """Stride 0 along every axis that holds one value throughout."""
    index = tuple(slice(0, 1) if same else slice(None) for same in repeated(a))
    return np.broadcast_to(a[index], a.shape)


def _readonly(a):
    """The same values, not writeable."""
    frozen = a.copy()
    frozen.flags.writeable = False
    return frozen


VIEWS = {
    "": lambda a: a,
    "every other entry": _strided,
    "negative strides": _reversed,
    "column-major": _transposed,
    "offset in a buffer": _with_offset,
    "expanded": _expanded,
    "read-only": _readonly,
}
ADAPTER = Numpy
