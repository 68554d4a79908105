"""What tests on a real card share: whether there is one, and work that keeps a stream busy.

CuPy is imported when a function is called: this file imports on any machine.
"""

# pyright: reportMissingImports=false
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache
from time import perf_counter

import pytest

from refssm_gpu._launching import missing
from refssm_gpu._launching.kernel import on_host

BUSY = 2**28  # numbers of the array that is written to keep a stream busy: few launches are long
LEAST = 0.02  # seconds, and five times what Python needs for the call
LONGER = 5


def lack() -> str:
    """Why tests on a card cannot run here, or ""."""
    if on_host():
        return "REFSSM_GPU=host: these tests are for a card (make test-gpu)"
    return missing._lack()


needs_card = pytest.mark.skipif(bool(lack()), reason=f"no card to test: {lack()}")


def needs_memory(size: int) -> None:
    """Skip unless the card has so many bytes free."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    free, _ = cupy.cuda.runtime.memGetInfo()
    if free < size:
        pytest.skip(f"it needs {size / 2**30:.0f} GiB of the card, {free / 2**30:.0f} are free")


@contextmanager
def limited(size: int):
    """A pool of the card's memory with so many bytes; its bytes in use come from `used_bytes`."""
    import cupy

    pool = cupy.cuda.MemoryPool()
    pool.set_limit(size=size)
    with cupy.cuda.using_allocator(pool.malloc):
        yield pool
    pool.free_all_blocks()


@cache
def _stream():
    """One for all tests: the pool keeps memory for each stream."""
    import cupy

    return cupy.cuda.Stream(non_blocking=True)


def returns_early(call: Callable[[], object]) -> bool:
    """Whether a call returns while the work that its stream had before is still under way.

    The call ran on this stream before: compiled, and with memory in the pool. Asking the card for
    memory may wait for it. CUDA queues about a thousand launches: a call of more would wait, too.
    """
    import cupy

    stream = _stream()
    with stream:
        busy = cupy.zeros(BUSY, cupy.float32)
        y = call()
        del y
        stream.synchronize()
        begun = perf_counter()
        y = call()
        took = perf_counter() - begun
        del y
        stream.synchronize()
        begun = perf_counter()
        busy += cupy.float32(1)
        stream.synchronize()
        once = perf_counter() - begun
        before = cupy.cuda.Event()
        for _ in range(int(max(LEAST, LONGER * took) / once) + 1):
            busy += cupy.float32(1)
        before.record()
        y = call()
        early = not before.done
        stream.synchronize()
        del y
    return early
