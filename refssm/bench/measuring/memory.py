"""Memory: what is free, and the peak of one call."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

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
