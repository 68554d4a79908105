"""Times of several calls, interleaved in rounds, and what a median of few times is worth.

Then memory: what is free, and the peak of one call.

This machine: its rates in the same run, its processor, its threads.
"""

from __future__ import annotations

import ctypes
import gc
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from math import ceil, comb
from pathlib import Path

import numpy as np

from refssm import __version__
from refssm.bench.programs.program import versions

CPUINFO = Path("/proc/cpuinfo")
COPIED = 2**28  # bytes
SIDE = 2048  # of the matrices
REPETITIONS = 7
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "XLA_FLAGS")


@dataclass(frozen=True)
class Rates:
    """Bytes a second of a copy, read and written; operations a second of matrix products."""

    copy: float
    float32: float
    float64: float
    card: Rates | None = None  # those of the GPU, if it takes part

    def of(self, device: str) -> Rates | None:
        """The rates of the processor (""), or of the card."""
        return self.card if device else self

    def matrix(self, dtype: str) -> float:
        """The rate of matrix products in the precision of a type."""
        return self.float64 if dtype in ("float64", "complex128") else self.float32


def rates(copied: int = COPIED, side: int = SIDE, clock=time.perf_counter) -> Rates:
    """Measure them, with as many threads as there are cores."""
    float32, float64 = (_product(side, kind, clock) for kind in ("f4", "f8"))
    return Rates(_copy(copied, clock), float32, float64)


def _copy(size: int, clock) -> float:
    """Each core copies a part; NumPy lets other threads run meanwhile."""
    threads = cores()
    source, target = np.ones(size // 8), np.zeros(size // 8)
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:

        def copy():
            list(pool.map(lambda part: np.copyto(part[1], part[0]), parts))

        return 2 * source.nbytes / _best(copy, clock)


def _product(side: int, kind: str, clock) -> float:
    a, b = np.ones((2, side, side), kind)
    return 2.0 * side**3 / _best(lambda: a @ b, clock)


def _best(call: Callable[[], object], clock) -> float:
    """The shortest of some times, after one call that does not count."""
    call()
    times = []
    for _ in range(REPETITIONS):
        begun = clock()
        call()
        times.append(clock() - begun)
    return max(min(times), 1e-9)


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """The processor's name."""
    if CPUINFO.is_file():
        for line in CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def described(peers: bool) -> dict:
    """Processor, cores, threads, versions, and the load before the run."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    threads: dict = {"numba": import_module("refssm.jit._compiling.threads").threads()}
    found = versions()
    if peers and "torch" in found:
        threads["torch"] = import_module("torch").get_num_threads()
    threads |= {name: os.environ[name] for name in THREADS if name in os.environ}
    return {
        "processor": processor(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": threads,
        "load": load,
        "versions": {"refssm": __version__, "python": platform.python_version(), **found},
    }


LEAST, MOST = 7, 41  # rounds
SHORT = 1e-3  # shorter calls are repeated in one timing, up to REPEATS times
REPEATS = 1000
CONFIDENCE = 0.95
Clock = Callable[[], float]
Timed = Callable[[int], object]
Timer = Callable[[Timed, int, int], float]  # seconds of one call; repeats; the first argument


@dataclass
class Times:
    """Seconds of each call in each round, and what a call raised."""

    seconds: list[list[float]] = field(default_factory=list)
    failed: dict[int, Exception] = field(default_factory=dict)


@dataclass(frozen=True)
class TimingPlan:
    """How often an implementation is called: rounds, and calls in each timing of a round."""

    rounds: int
    repeats: int
    timer: Timer | None = None  # instead of `one` and the clock: a card has its own

    @classmethod
    def of(
        cls, seconds: float, budget: float, least: int = LEAST, most: int = REPEATS
    ) -> TimingPlan:
        """The plan for a call that takes so many seconds."""
        repeats = int(min(most, max(1, ceil(SHORT / max(seconds, 1e-9)))))
        rounds = int(budget / max(seconds * repeats, 1e-9))
        return cls(min(MOST, max(least, rounds)), repeats)


@contextmanager
def no_collection() -> Iterator[None]:
    """Context without garbage collection."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def one(call: Timed, repeats: int, first: int, clock: Clock = time.perf_counter) -> float:
    """Seconds of one call; the outputs of the last one are freed after the clock is read."""
    y = None
    with no_collection():
        begun = clock()
        for i in range(first, first + repeats):
            y = call(i)
        ended = clock()
    del y
    return (ended - begun) / repeats


def interleaved(
    calls: Sequence[Timed],
    plans: Sequence[TimingPlan],
    clock: Clock = time.perf_counter,
    tick: Callable[[int, int], None] = lambda done, count: None,
    times: Times | None = None,
    pause: Callable[[], None] = lambda: None,
) -> Times:
    """Seconds of each call in each round, in another order in each round.

    A call with fewer rounds takes part in the first ones. A call that raises takes part no more.
    `times` is filled, so an interrupted caller has what was measured. `pause` is called before each
    timing: threads of the library before it spin for a while, waiting for work.
    """
    times = times or Times()
    times.seconds[:] = [[] for _ in calls]
    rng, count = np.random.default_rng(0), max((plan.rounds for plan in plans), default=0)
    for r in range(count):
        tick(r, count)
        for k in rng.permutation(len(calls)):  # each has another one before it each time
            if k in times.failed or r >= plans[k].rounds:
                continue
            pause()
            try:
                repeats, timer = plans[k].repeats, plans[k].timer or partial(one, clock=clock)
                times.seconds[k].append(timer(calls[k], repeats, r * repeats))
            except Exception as error:
                times.failed[int(k)] = error
    return times


@dataclass(frozen=True)
class Interval:
    """A median and where it may lie, at 95 % if there are times enough."""

    value: float
    low: float
    high: float


def median(times: Sequence[float]) -> Interval:
    """The median with the order statistics that enclose it."""
    x = np.sort(np.asarray(times, float))
    k = _rank(x.size)
    return Interval(float(np.median(x)), float(x[k]), float(x[x.size - 1 - k]))


def quartiles(times: Sequence[float]) -> tuple[float, float]:
    """The first and the third quartile."""
    low, high = np.percentile(np.asarray(times, float), (25, 75))
    return float(low), float(high)


def ratio(other: Sequence[float], mirror: Sequence[float]) -> Interval:
    """How many times as long the other takes: medians; the interval is that of paired rounds."""
    count = min(len(other), len(mirror))
    paired = median([a / b for a, b in zip(other[:count], mirror[:count], strict=True)])
    value = float(np.median(other) / np.median(mirror))
    return Interval(value, min(value, paired.low), max(value, paired.high))


def _rank(n: int) -> int:
    """The largest k so that x[k] to x[n-1-k] encloses the median with CONFIDENCE; else 0."""
    tail, k = 0.0, 0
    for i in range((n - 1) // 2):
        tail += comb(n, i) / 2.0**n
        if 1 - 2 * tail < CONFIDENCE:
            break
        k = i
    return k


STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MEMINFO = Path("/proc/meminfo")
CACHE = Path("/sys/devices/system/cpu/cpu0/cache")
USUAL_CACHE = 32 * 2**20
UNKNOWN = 4 * 2**30  # free memory where the system does not say


def available() -> int:
    """Bytes that are free, or can be made free."""
    return _field(MEMINFO, "MemAvailable") or UNKNOWN


def last_cache() -> int:
    """Bytes of the last cache of one core."""
    sizes = []
    for path in CACHE.glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        unit = {"K": 2**10, "M": 2**20}.get(text[-1:], 1)
        sizes.append(int(text.rstrip("KM")) * unit)
    return max(sizes, default=USUAL_CACHE)


def peak_of(call: Callable[[], object]) -> int | None:
    """Bytes of one call beyond what was there before it, its outputs among them.

    None where the system does not count: only Linux resets the peak of a process.
    """
    try:
        _give_back()
        CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return None
    before = _field(STATUS, "VmRSS")
    outputs = call()
    peak = _field(STATUS, "VmHWM")
    del outputs
    return max(0, peak - before)


def _give_back() -> None:
    """Return freed memory to the system: a call that uses it again would not count."""
    gc.collect()
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def _field(path: Path, name: str) -> int:
    """A field of a file in /proc, in bytes; 0 if there is none."""
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0
