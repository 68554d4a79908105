"""NumPy: the arrays themselves and views of them; the base class of the other adapters."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from refssm.conformance.number_types import NumberType

BFLOAT16 = "bfloat16"  # NumPy's type of this name is that of ml_dtypes; its kind is "V"


@dataclass(frozen=True)
class Unusable:
    """Marks an output that is not an array of numbers, or is elsewhere."""

    type: str
    sentence: str = ""  # in place of "is a <type>, want an array"


class NoDevice(Exception):
    """The requested device does not exist here."""


class Numpy:
    """The adapter of NumPy arrays; the only `device` is the CPU."""

    name = "numpy"
    immutable = False
    lacks: Mapping[str, str] = {}  # types that cannot be judged here, and a sentence that says why
    streams = False  # True: calls only queue their work, on the stream that is current
    faults: tuple[type[Exception], ...] = ()  # exceptions of a device, also of queued work
    tf32 = ""  # the settings by which float32 products are computed in TF32

    def __init__(self, device: str = ""):
        if device not in ("", "cpu"):
            advice = "--framework torch, jax or cupy makes arrays on a device"
            raise NoDevice(f"{self.name} has no device {device!r}: {advice}")
        self.device = device
        self.views, self.lacks = dict(VIEWS), without_bfloat16()

    def about(self) -> str:
        """The framework's version, device and flags; the header has NumPy's version already."""
        tiny = np.full(8, np.finfo(np.float32).tiny, np.float32)
        half = tiny * np.float32(0.5)  # -ffast-math in a library may switch it on
        flushed = "no" if (half + half == tiny).all() else "yes"
        return f"numpy arrays, device cpu, flush to zero: {flushed}"

    def inside(self, kind: NumberType) -> AbstractContextManager:
        """A context for calls in this type: settings such as double precision."""
        del kind
        return nullcontext()

    def give(self, a: np.ndarray, kind: NumberType, view: str = "") -> Any:
        """`a` as an array of the framework, with type `kind`, in the memory layout `view`."""
        return self.views[view](cast(a, kind))

    def take(self, y: Any, kind: NumberType) -> np.ndarray | Unusable:
        """An output as a contiguous NumPy array in native byte order, or `Unusable`."""
        if not isinstance(y, np.ndarray) and hasattr(y, "__array__"):
            y = np.asarray(y)
        if not isinstance(y, np.ndarray):
            return Unusable(named(y))
        if y.dtype.kind not in "biufc" and y.dtype.name != BFLOAT16:
            return Unusable(f"array of {y.dtype}")
        y = np.array(y, dtype=y.dtype.newbyteorder("="), order="C", subok=False)
        return carried(y, y.dtype.name, kind)

    def finish(self) -> None:
        """Wait for all work of the device; raises one of `faults` if some of it failed."""

    def behind(self, given: Sequence) -> AbstractContextManager[Sequence]:
        """A context with another current stream, on which copies of `given` are written late."""
        return nullcontext(given)

    def lost(self) -> bool:
        """True if this process can no longer use the device."""
        try:
            self.finish()
        except self.faults:
            return True
        return False

    def ran_out(self, error: BaseException | None) -> bool:
        """True if the device had too little memory; then gives back what is kept in reserve."""
        del error
        return False

    def part(self, x: Any, place: tuple) -> Any:
        """The entry of the leading axes at `place`, which may share memory with `x`."""
        return x[place]

    def copied(self, x: Any) -> Any:
        """A copy in memory of its own."""
        return x.copy()

    def refill(self, x: Any, y: Any) -> None:
        """Write the values of `y` into the memory of `x`; never called if `immutable`."""
        x[...] = y

    def share(self, x: Any, y: Any) -> bool:
        """True if two arrays may share memory."""
        if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
            return False
        return x.size > 0 and y.size > 0 and np.may_share_memory(x, y)

    def same(self, x: Any, y: Any) -> bool:
        """True if all entries are equal; NaN equals NaN."""
        return np.array_equal(x, y, equal_nan=True)

    def pullback(self, function, cotangents, primals, statics) -> tuple:
        """Gradients by the framework's autodiff, g = ∂L/∂Re + i ∂L/∂Im for complex arguments."""
        raise NotImplementedError(f"{self.name} has no autodiff")


def without_bfloat16() -> dict[str, str]:
    """Why arrays of bfloat16 cannot be made here: no entry where ml_dtypes is installed."""
    if find_spec("ml_dtypes") is not None:
        return {}
    return {BFLOAT16: "bfloat16 is not judged: ml_dtypes is not installed (pip install ml_dtypes)"}


def bfloat16() -> np.dtype:
    """The type of ml_dtypes, which is imported only where it is asked for."""
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def cast(a: np.ndarray, kind: NumberType) -> np.ndarray:
    """`a` cast to `kind` if that has 16 bits; flags stay as they are.

    An array of float64 is a result of a wider type (see `carried`), such as a float32 state of a
    float16 kernel that is given to its next call: it is given as float32.
    """
    if not kind.half or a.dtype.kind in "bi":
        return a
    if a.dtype == np.float64:
        return a.astype(np.float32)
    return a.astype(bfloat16() if kind.name == BFLOAT16 else np.float16)


def named(y) -> str:
    """The name of y's type."""
    return type(y).__name__


def carried(y: np.ndarray, name: str, kind: NumberType) -> np.ndarray | Unusable:
    """An output of the type called `name`, where `kind` is the judged type.

    If a 16-bit type is judged, its values become float32 and those of wider types float64, so that
    the two can be told apart.
    """
    if not kind.half:
        return Unusable(f"{name} array") if name == BFLOAT16 else y
    if name == kind.name:
        return y.astype(np.float32)
    if y.dtype.kind != "f" or y.dtype.itemsize < 4 or name == BFLOAT16:  # kind f: float8_e5m2 too
        return Unusable(f"{name} array")
    return y.astype(np.float64)


def _outside(a) -> float:
    """What stands beside a view in memory: NaN, or a number that no offset may be."""
    return -1 if a.dtype.kind == "i" else np.nan


def _strided(a):
    """Every second entry of a wider array, along the last axis."""
    wide = np.empty((*a.shape[:-1], 2 * a.shape[-1]), a.dtype) if a.ndim else a.copy()
    if a.ndim:
        wide[..., ::2] = a
        wide[..., 1::2] = _outside(a)
    return wide[..., ::2] if a.ndim else wide


def _reversed(a):
    """Negative strides along every axis."""
    flip = (slice(None, None, -1),) * a.ndim
    # not ascontiguousarray, which makes scalars one-dimensional
    return np.array(a[flip], order="C")[(*flip, ...)]


def _transposed(a):
    """Column-major memory."""
    return np.array(a, order="F")


def _padded(a):
    """A slice of an array that is one longer along every axis but the first."""
    return _within((*a.shape[:1], *(n + 1 for n in a.shape[1:])), a)


def _halved(a):
    """The first half of an array along its second axis, as `chunk(2, dim=1)` gives it."""
    return _within((*a.shape[:1], *(2 * n for n in a.shape[1:2]), *a.shape[2:]), a)


def _within(shape: tuple[int, ...], a):
    """A view of an array of this shape, with NaN outside of the view."""
    wide = np.full(shape, _outside(a), a.dtype)
    inside = (*map(slice, a.shape), ...)  # with the dots a scalar stays an array
    wide[inside] = a
    return wide[inside]


def _with_offset(a):
    """Contiguous, but one element into a larger buffer: aligned to the element size only."""
    buffer = np.full(a.size + 1, _outside(a), a.dtype)
    buffer[1:] = a.ravel()
    return buffer[1:].reshape(a.shape)


def repeated(a):
    """For each axis, True if the array is constant along it (and longer than 1)."""
    return [n > 1 and bool((np.take(a, [0], axis=i) == a).all()) for i, n in enumerate(a.shape)]


def _expanded(a):
    """Stride 0 along every axis on which the array is constant."""
    index = tuple(slice(0, 1) if same else slice(None) for same in repeated(a))
    return np.broadcast_to(a[index], a.shape)


def _readonly(a):
    """A read-only copy."""
    frozen = a.copy()
    frozen.flags.writeable = False
    return frozen


VIEWS = {
    "": lambda a: a,
    "every other entry": _strided,
    "negative strides": _reversed,
    "column-major": _transposed,
    "padded rows": _padded,
    "half of an array": _halved,
    "offset in a buffer": _with_offset,
    "expanded": _expanded,
    "read-only": _readonly,
}
ADAPTER = Numpy
