"""A fake CuPy with two clocks: the processor's, and a card's that works off what is queued there.

Kernels take the seconds that they say, and Python goes on at once. What a real card does between
kernels it cannot show.
"""

import importlib.machinery
import types
from contextlib import contextmanager
from typing import Any

import numpy as np

WRITTEN = 1e-12  # seconds for one byte
CACHE = 50 * 2**20


class Clocks:
    """Seconds of the processor, and until when the card is busy."""

    def __init__(self):
        self.now, self.busy, self.writes = 0.0, 0.0, 0

    def __call__(self):
        return self.now

    def launch(self, seconds):
        """Queue a kernel; Python goes on."""
        self.busy = max(self.now, self.busy) + seconds

    def wait(self):
        """Wait for the card."""
        self.now = max(self.now, self.busy)


class Array:
    """A buffer, of which only the size is there."""

    def __init__(self, clocks, shape, dtype: Any = np.float32):
        self.clocks, self.shape, self.dtype = clocks, shape, np.dtype(dtype)

    @property
    def nbytes(self):
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def __iadd__(self, one):
        self.clocks.writes += 1
        self.clocks.launch(WRITTEN * self.nbytes)
        return self

    def reshape(self, *shape):
        return Array(self.clocks, shape, self.dtype)


class Pool:
    """A memory pool that has what was allocated while it was in use."""

    current = None

    def __init__(self):
        self.taken = 0

    def malloc(self, size):
        self.taken += size

    def total_bytes(self):
        return self.taken

    def free_all_blocks(self):
        self.taken = 0


def event(clocks):
    """The class of events."""

    class Event:
        def record(self):
            self.at = max(clocks.now, clocks.busy)

        @property
        def done(self):
            return clocks.now >= self.at

        def synchronize(self):
            clocks.wait()

    return Event


class Stream:
    """The stream of all work."""

    def __init__(self, clocks):
        self.clocks = clocks

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False

    def synchronize(self):
        self.clocks.wait()


def double(clocks):
    """The fake module."""
    cupy = types.ModuleType("cupy")
    cupy.__spec__ = importlib.machinery.ModuleSpec("cupy", None)
    cupy.__version__, cupy.float32 = "0.0 of the double", np.float32
    cupy.zeros = cupy.empty = lambda shape, dtype: Array(clocks, shape, dtype)
    cupy.arange = lambda begin, end, dtype: Array(clocks, end - begin, dtype)
    cupy.sin = lambda x: x
    cupy.copyto = lambda target, source: clocks.launch(2 * WRITTEN * source.nbytes)
    cupy.matmul = lambda a, b, out: clocks.launch(1e-3 * a.dtype.itemsize)
    pool = Pool()
    cupy.get_default_memory_pool = lambda: pool

    @contextmanager
    def using_allocator(allocate):
        cupy.alloc = allocate
        yield

    properties = {"name": b"Double 9000", "major": 9, "minor": 0, "multiProcessorCount": 132}
    properties |= {"totalGlobalMem": 80 * 2**30, "l2CacheSize": CACHE}
    cupy.cuda = types.SimpleNamespace(
        Device=lambda: types.SimpleNamespace(id=0, synchronize=clocks.wait),
        Event=event(clocks),
        Stream=lambda non_blocking: Stream(clocks),
        get_elapsed_time=lambda begun, ended: 1e3 * (ended.at - begun.at),
        MemoryPool=Pool,
        using_allocator=using_allocator,
        runtime=types.SimpleNamespace(
            getDeviceProperties=lambda number: properties,
            driverGetVersion=lambda: 13000,
            runtimeGetVersion=lambda: 12080,
            memGetInfo=lambda: (2**30, 80 * 2**30),
        ),
    )
    return cupy
