"""This machine: its rates in the same run, its processor, its threads."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
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
