"""The card in this machine: its facts, its rates, and seconds of calls by its own clock.

A timing begins with a cold second-level cache: a buffer larger than the cache is written before it.
While the card writes, Python starts the call. So a time is that of the card's work, without the
work of Python; `latency` in a row has both. JAX's streams do not wait for others, and its calls end
when the result is there: these are timed by the processor's clock.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from importlib import import_module
from math import ceil

import cupy

from refssm.bench.measuring.timing import Rates, Timed, Timer, no_collection
from refssm.conformance.calling.adapters.cuda import version

FLUSHED = 2**28  # bytes written before a timing, at least four times the second-level cache
COPIED = 2**31  # bytes
SIDES = {"float32": 8192, "float64": 4096}  # of the matrices; cards for graphics have few doubles
REPETITIONS = 7
AHEAD = 2  # the card is kept busy for so many times as long as Python takes to start a call
LONGEST = 0.05  # seconds, at most


class BenchCard:
    """CuPy's current device."""

    def __init__(self, flushed: int = FLUSHED, clock: Callable[[], float] = time.perf_counter):
        self.clock, self.device = clock, cupy.cuda.Device()
        self.properties = cupy.cuda.runtime.getDeviceProperties(self.device.id)
        size = max(flushed, 4 * int(self.properties["l2CacheSize"]))
        self.buffer = cupy.zeros(size // 4, cupy.float32)
        self.writing = self._best(self._write)

    def facts(self) -> dict:
        """What the card and its software are."""
        runtime, properties = cupy.cuda.runtime, self.properties
        return {
            "name": properties["name"].decode(),
            "capability": f"{properties['major']}.{properties['minor']}",
            "multiprocessors": int(properties["multiProcessorCount"]),
            "memory": int(properties["totalGlobalMem"]),
            "cache": int(properties["l2CacheSize"]),
            "driver": _driver(),
            "driver_cuda": version(runtime.driverGetVersion()),
            "runtime_cuda": version(runtime.runtimeGetVersion()),
            "cupy": cupy.__version__,
            "tf32": os.environ.get("CUPY_TF32") == "1",
        }

    def rates(self) -> Rates:
        """Bytes a second of a copy, read and written; operations a second of products."""
        float32, float64 = (self._product(kind, side) for kind, side in SIDES.items())
        found = Rates(self._copy(), float32, float64)
        self.release()
        return found

    def timer(self, call: Timed, framework: str) -> Timer:
        """What times a call, which was called before and so is compiled."""
        if framework == "jax":
            return self._by_the_processor
        begun = self.clock()
        call(0)
        starting = self.clock() - begun
        self.device.synchronize()
        lead = ceil(min(AHEAD * starting, LONGEST) / self.writing)
        return lambda call, repeats, first: self._seconds(call, repeats, first, max(1, lead))

    def peak(self, call: Callable[[], object], framework: str) -> int | None:
        """Bytes of one call on the card, its outputs among them; None where nobody counts."""
        if framework == "torch":
            return _peak_of_torch(call)
        if framework != "cupy":
            return None
        pool = cupy.cuda.MemoryPool()  # a new one has only what the call takes
        with cupy.cuda.using_allocator(pool.malloc):
            y = call()
        taken = pool.total_bytes()
        del y
        pool.free_all_blocks()
        return taken

    def release(self) -> None:
        """Give back free memory of the pool, for other libraries have pools of their own."""
        self.device.synchronize()
        cupy.get_default_memory_pool().free_all_blocks()

    def _seconds(self, call: Timed, repeats: int, first: int, lead: int) -> float:
        total = 0.0
        with no_collection():
            for i in range(first, first + repeats):
                begun, ended = cupy.cuda.Event(), cupy.cuda.Event()
                for _ in range(lead):
                    self._write()
                begun.record()
                y = call(i)
                ended.record()
                ended.synchronize()
                total += cupy.cuda.get_elapsed_time(begun, ended) / 1e3
                del y
        return total / repeats

    def _by_the_processor(self, call: Timed, repeats: int, first: int) -> float:
        total = 0.0
        with no_collection():
            for i in range(first, first + repeats):
                self._write()
                self.device.synchronize()
                begun = self.clock()
                y = call(i)
                total += self.clock() - begun
                del y
        return total / repeats

    def _write(self) -> None:
        self.buffer += cupy.float32(1)

    def _best(self, call: Callable[[], object]) -> float:
        """The shortest of some times by the card's clock, after one call that does not count."""
        call()
        times = []
        for _ in range(REPETITIONS):
            begun, ended = cupy.cuda.Event(), cupy.cuda.Event()
            begun.record()
            call()
            ended.record()
            ended.synchronize()
            times.append(cupy.cuda.get_elapsed_time(begun, ended) / 1e3)
        return max(min(times), 1e-9)

    def _copy(self) -> float:
        free, _ = cupy.cuda.runtime.memGetInfo()
        count = min(COPIED, free // 4) // 4
        source, target = cupy.zeros(count, cupy.float32), cupy.empty(count, cupy.float32)
        return 2 * source.nbytes / self._best(lambda: cupy.copyto(target, source))

    def _product(self, kind: str, side: int) -> float:
        # numbers of all sizes: a product of zeros needs less power, and so runs faster
        a, b = (cupy.sin(cupy.arange(k, side * side + k, dtype=kind)) for k in (0, 1))
        a, b, y = a.reshape(side, side), b.reshape(side, side), cupy.empty((side, side), kind)
        return 2.0 * side**3 / self._best(lambda: cupy.matmul(a, b, out=y))


def _peak_of_torch(call: Callable[[], object]) -> int:
    memory = import_module("torch").cuda
    memory.synchronize()
    memory.reset_peak_memory_stats()
    before = memory.memory_allocated()
    y = call()
    memory.synchronize()
    del y
    return memory.max_memory_allocated() - before


def _driver() -> str:
    """The driver's own version, "" where nvidia-smi does not say."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    command = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", timeout=20, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.split("\n")[0].strip() if done.returncode == 0 else ""
