"""CuPy: arrays on a CUDA device, with most of NumPy's interface and memory layouts."""

# pyright: reportMissingImports=false
from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import cupy
import numpy as np

from refssm.conformance.calling.adapters import cuda
from refssm.conformance.calling.adapters.numpy_arrays import (
    BFLOAT16,
    VIEWS,
    NoDevice,
    Numpy,
    Unusable,
    carried,
    cast,
    without_bfloat16,
)
from refssm.conformance.number_types import NumberType


class Cupy(Numpy):
    """Arrays on the device "cuda" or "cuda:1"."""

    name = "cupy"
    streams = True
    faults = (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)

    def __init__(self, device: str = ""):
        kind, _, number = device.partition(":")
        count = cupy.cuda.runtime.getDeviceCount() if cupy.is_available() else 0
        place = int(number or 0) if (number or "0").isdecimal() else count
        if kind not in ("", "cuda", "gpu") or place >= count:
            raise NoDevice(f"cupy has no device {device or 'cuda'!r} here; devices found: {count}")
        self.device = cupy.cuda.Device(place)
        self.device.use()
        self.views = {name: view for name, view in VIEWS.items() if name in KEPT}
        self.lacks = without_bfloat16() or _unknown()

    @property
    def tf32(self) -> str:
        """The environment variable, if it is set."""
        return "CUPY_TF32=1" if os.environ.get("CUPY_TF32") == "1" else ""

    def about(self) -> str:
        runtime = cupy.cuda.runtime
        properties = runtime.getDeviceProperties(self.device.id)
        card, tiny = properties["name"].decode(), np.finfo(np.float32).tiny
        capability = f"compute capability {properties['major']}.{properties['minor']}"
        driver, own = map(cuda.version, (runtime.driverGetVersion(), runtime.runtimeGetVersion()))
        half = cupy.full(8, tiny, np.float32) * np.float32(0.5)
        flushed = cuda.yes(not bool((half + half == tiny).all()))
        told = f"cupy {cupy.__version__}, device cuda:{self.device.id} ({card}, {capability})"
        told += f", driver for CUDA {driver}, runtime CUDA {own}, flush to zero: {flushed}"
        return f"{told}, TF32 in products: {cuda.yes(bool(self.tf32))}"

    def inside(self, kind: NumberType) -> AbstractContextManager:
        """The device is the current one, whichever an earlier call left behind."""
        del kind
        return cupy.cuda.Device(self.device.id)

    def finish(self) -> None:
        self.device.synchronize()

    @contextmanager
    def behind(self, given: Sequence) -> Iterator[Sequence]:
        late = [cupy.full_like(x, 0 if x.dtype.kind in "bi" else cupy.nan) for x in given]
        busy = cupy.zeros(cuda.BUSY, np.float32)
        self.finish()
        with cupy.cuda.Stream(non_blocking=True):
            for _ in range(cuda.ROUNDS):
                busy += np.float32(1)
            for x, ready in zip(late, given, strict=True):
                x[...] = ready
            yield late

    def ran_out(self, error: BaseException | None) -> bool:
        if not isinstance(error, cupy.cuda.memory.OutOfMemoryError):
            return False
        cupy.get_default_memory_pool().free_all_blocks()
        return True

    def give(self, a: np.ndarray, kind: NumberType, view: str = "") -> Any:
        """Make the view on the host, then copy it to a device array with the same strides."""
        return _with_strides_of(self.views[view](cast(a, kind)))

    def take(self, y: Any, kind: NumberType) -> np.ndarray | Unusable:
        place = f"cuda:{self.device.id}"
        if not isinstance(y, cupy.ndarray):
            on_host = isinstance(y, np.ndarray)
            told = cuda.elsewhere("a NumPy array", "the host", place) if on_host else ""
            return Unusable(type(y).__name__, told)
        if y.device.id != self.device.id:
            return Unusable("ndarray", cuda.elsewhere("an array", f"cuda:{y.device.id}", place))
        return carried(cupy.asnumpy(y, order="C"), y.dtype.name, kind)

    def share(self, x: Any, y: Any) -> bool:
        if not (isinstance(x, cupy.ndarray) and isinstance(y, cupy.ndarray)):
            return False
        return x.size > 0 and y.size > 0 and bool(cupy.may_share_memory(x, y))

    def same(self, x: Any, y: Any) -> bool:
        return bool(((x == y) | ((x != x) & (y != y))).all())


def _unknown() -> dict[str, str]:
    """Why CuPy has no bfloat16: its comparisons list the types that it knows, E for bfloat16."""
    if any("E" in loop for loop in cupy.equal.types):
        return {}
    told = f"CuPy {cupy.__version__} does not know it; CuPy 14 with NumPy 2.1.2 does"
    return {BFLOAT16: f"bfloat16 is not judged: {told}"}


def _with_strides_of(view: np.ndarray) -> Any:
    """A device array with the values and strides of a host view, negative or zero ones included."""
    steps = [abs(s) // view.itemsize if n > 1 else 0 for s, n in zip(view.strides, view.shape,
                                                                     strict=True)]  # fmt: skip
    reach = 1 + sum(step * (n - 1) for step, n in zip(steps, view.shape, strict=True))
    buffer = cupy.full(max(reach, 1), 0 if view.dtype.kind in "bi" else cupy.nan, view.dtype)
    strides = tuple(step * view.itemsize for step in steps)
    device = cupy.lib.stride_tricks.as_strided(buffer, view.shape, strides)
    forward = tuple(slice(None, None, -1 if s < 0 else 1) for s in view.strides)
    device[...] = cupy.asarray(np.array(view[forward], order="C"))
    return device[forward]


KEPT = ("", "every other entry", "negative strides", "column-major", "padded rows",
        "half of an array", "expanded")  # fmt: skip
ADAPTER = Cupy
