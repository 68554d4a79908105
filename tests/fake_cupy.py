"""A fake CuPy made from NumPy, with streams whose work waits until something waits for it.

Work of an array (a ufunc, an assignment) is ordered on the current stream: it first runs what is
queued there, and nothing of other streams. `Stream.launch` stands for the launch of a kernel. It
cannot show what needs a card: real timing, memory invisible to the host, kernels.
"""

import importlib.machinery
import threading
import types
from typing import ClassVar

import numpy as np


class CUDARuntimeError(RuntimeError):
    """The exception of the runtime."""


class CUDADriverError(RuntimeError):
    """The exception of the driver."""


class OutOfMemoryError(MemoryError):
    """The exception of the memory pool."""


ILLEGAL = "cudaErrorIllegalAddress: an illegal memory access was encountered"


class Stream:
    """A queue of work; all streams of the fake are non-blocking ones."""

    every: ClassVar[list["Stream"]] = []
    entered: ClassVar[list["Stream"]] = []
    null: "Stream"

    def __init__(self, non_blocking=False):
        del non_blocking
        self.queue, self.ptr = [], len(Stream.every)
        Stream.every.append(self)

    def __enter__(self):
        Stream.entered.append(self)
        return self

    def __exit__(self, *exception):
        Stream.entered.pop()

    def launch(self, work):
        """Queue work, as the launch of a kernel does."""
        self.queue.append(work)

    def synchronize(self):
        """Run what is queued here."""
        if Device.broken:
            raise CUDARuntimeError(Device.broken)
        while self.queue:
            work = self.queue.pop(0)
            work()


Stream.null = Stream()


def current():
    """The current stream."""
    return Stream.entered[-1] if Stream.entered else Stream.null


class Device:
    """A device; `used` are the numbers of those made current, `broken` its last words."""

    used = ()
    broken = ""

    def __init__(self, number=0):
        self.id = number

    def use(self):
        Device.used = (*Device.used, self.id)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def synchronize(self):
        for stream in Stream.every:
            stream.synchronize()


class Array(np.ndarray):
    """Stands for cupy.ndarray: slices have the same type."""

    place = 0

    @property
    def device(self):  # pyright: ignore[reportIncompatibleMethodOverride]
        return Device(self.place)

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **how):
        current().synchronize()
        plain = [x.view(np.ndarray) if isinstance(x, Array) else x for x in inputs]
        if out:
            how["out"] = tuple(x.view(np.ndarray) for x in out)
        result = getattr(ufunc, method)(*plain, **how)
        return out[0] if out else np.asarray(result).view(Array)

    def __getitem__(self, index):
        return np.asarray(super().__getitem__(index)).view(type(self))

    def __setitem__(self, index, value):
        assert isinstance(value, Array | int | float), "a host array does not convert silently"
        plain = self.view(np.ndarray)
        given = value.view(np.ndarray) if isinstance(value, Array) else value
        if threading.current_thread() is not threading.main_thread():
            plain[index] = given  # in a kernel of Numba's simulator
            return
        current().launch(lambda: plain.__setitem__(index, given))
        if current() is Stream.null:
            Stream.null.synchronize()


def on_device(function):
    """A NumPy function that returns an array of the fake."""
    return lambda *args, **kwargs: np.asarray(function(*args, **kwargs)).view(Array)


def _asnumpy(x, order="C"):
    current().synchronize()
    return np.array(x, order=order, subok=False)  # pyright: ignore[reportCallIssue, reportArgumentType]


class Pool:
    """The memory pool; counts how often it was emptied."""

    emptied = 0

    def free_all_blocks(self):
        Pool.emptied += 1


def double(devices):
    """The fake module, with the parts that the adapter needs."""
    cupy = types.ModuleType("cupy")
    cupy.__spec__ = importlib.machinery.ModuleSpec("cupy", None)
    cupy.__version__ = "0.0 of the double"
    cupy.ndarray, cupy.nan, cupy.asnumpy = Array, np.nan, _asnumpy
    cupy.asarray, cupy.full, cupy.zeros = map(on_device, (np.array, np.full, np.zeros))
    cupy.full_like, cupy.empty_like = map(on_device, (np.full_like, np.zeros_like))
    cupy.equal = types.SimpleNamespace(types=["ee->?", "EE->?", "ff->?"])  # E is bfloat16
    cupy.broadcast_to = on_device(np.broadcast_to)
    cupy.may_share_memory = np.may_share_memory
    cupy.is_available = lambda: devices > 0
    as_strided = on_device(np.lib.stride_tricks.as_strided)
    cupy.lib = types.SimpleNamespace(stride_tricks=types.SimpleNamespace(as_strided=as_strided))
    cupy.get_default_memory_pool = Pool
    cupy.cuda = types.SimpleNamespace(
        Device=Device,
        Stream=Stream,
        get_current_stream=current,
        runtime=_runtime(devices),
        driver=types.SimpleNamespace(CUDADriverError=CUDADriverError),
        memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
    )
    return cupy


def _runtime(devices):
    named = {"name": b"Double", "major": 9, "minor": 0}  # bytes, as in CuPy
    return types.SimpleNamespace(
        getDeviceCount=lambda: devices,
        getDeviceProperties=lambda number: named,
        driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 12080,
        CUDARuntimeError=CUDARuntimeError,
    )


def reset():
    """Forget all streams, devices and errors."""
    Stream.every, Stream.entered = [Stream.null], []
    Stream.null.queue = []
    Device.used, Device.broken, Pool.emptied = (), "", 0


def scan(a, b):
    """A right scan in any array namespace."""
    x = b * (a * 0 + 1)
    for k in range(1, b.shape[-2]):
        x[..., k, :] += a[..., k, :] * x[..., k - 1, :]
    return x
