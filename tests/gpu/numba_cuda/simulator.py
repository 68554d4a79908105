"""Runs a kernel of the Numba tier on the CPU, thread by thread: deterministic, stricter than a GPU.

A barrier in the kernel's source becomes a `yield`, so each thread is a generator: one thread runs
to its next barrier, then the next thread. No library of coroutines is needed, and the order of
threads is free. What a GPU would let pass is a `KernelBug`:

- an index below zero or beyond the array (a GPU reads what is there);
- two threads that use one entry without a barrier between them, one of them writing; blocks too;
- threads of a block that wait at different barriers, or at one that others never reach;
- arithmetic that Numba would widen: float32 with a Python number or a float64;
- values stored in an array of another type, and atomics on complex numbers, which do not compile.

Shared memory starts as NaN. Warps only matter for the order "shuffled": no kernel here relies on
threads of a warp being together, and functions of warps are refused. Whole numbers are Python's, so
an offset that overflows is not seen; whole types other than int64 are refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from math import prod
from typing import Any

import numpy as np
from gpu.numba_cuda.simulated_memory import KernelBug, Memory
from gpu.numba_cuda.simulated_names import Device, Index
from gpu.numba_cuda.simulated_source import translated

ORDERS = ("first", "last", "shuffled")
_order = ["first"]


@contextmanager
def threads_in(order: str) -> Iterator[None]:
    """Let the threads of a block run in this order: the first first, the last first, or shuffled
    (warps, and threads within each), always in the same way."""
    if order not in ORDERS:
        raise ValueError(f"order: wanted one of {', '.join(ORDERS)}, got {order!r}")
    _order.append(order)
    try:
        yield
    finally:
        _order.pop()


def simulate(
    function: Callable,
    grid: Sequence[int],
    block: Sequence[int],
    arguments: Sequence[Any],
    *,
    name: str = "kernel",
    edit: Callable[[str], str] = str,
) -> None:
    """Run a kernel on NumPy arrays. `edit` changes the source of it and of the functions that
    it calls: tests plant bugs with it."""
    launch = _Launch(name, _sizes(grid), _sizes(block))
    kernel, filename = translated(function, launch.device, edit)
    launch.run(kernel, arguments, filename)


def _sizes(given: Sequence[int]) -> Index:
    return Index(*(*map(int, given), 1, 1)[:3])


class _Launch:
    """One launch: its blocks run one after another."""

    def __init__(self, name: str, grid: Index, block: Index):
        self.name, self.grid, self.block = name, grid, block
        self.memory = Memory()
        self.device = Device(self.memory, grid, block)
        self.order = _order[-1]
        self.random = random.Random(0)

    def run(self, kernel: Callable, arguments: Sequence[Any], filename: str) -> None:
        """All blocks."""
        if not 0 < prod(self.block) <= 1024:
            raise KernelBug(f"{self.name}: a block of {prod(self.block)} threads, wanted 1 to 1024")
        given = [self.memory.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
        self.filename = filename
        with np.errstate(all="ignore"):
            for z, y, x in product(*(range(n) for n in reversed(self.grid))):
                self._block(kernel, given, Index(x, y, z))

    def _block(self, kernel: Callable, given: Sequence[Any], place: Index) -> None:
        """The threads of one block, from barrier to barrier."""
        self.memory.begin_block(place)
        self.device.blockIdx = place
        alive = {thread: kernel(*given) for thread in self._ordered()}
        while alive:
            at = {thread: self._advanced(thread, run) for thread, run in alive.items()}
            lines = sorted({line for line in at.values() if line})
            ended = [thread for thread, line in at.items() if not line]
            if ended and lines:
                told = f"thread {tuple(ended[0])} has ended, others wait at line {lines[0]}"
                raise KernelBug(f"{self.name}, block {tuple(place)}: {told}")
            if len(lines) > 1:
                told = f"threads wait at different barriers, lines {lines}"
                raise KernelBug(f"{self.name}, block {tuple(place)}: {told}")
            alive = alive if lines else {}
            self.memory.barrier()

    def _advanced(self, thread: Index, run: Iterator[int]) -> int:
        """The line of the next barrier of a thread; 0 if it has ended."""
        self.device.threadIdx = self.memory.thread = thread
        try:
            return next(run, 0)
        except KernelBug as bug:
            trace, line = bug.__traceback__, 0
            while trace:
                inside = trace.tb_frame.f_code.co_filename == self.filename
                line = trace.tb_lineno if inside else line
                trace = trace.tb_next
            place = f"block {tuple(self.device.blockIdx)}, thread {tuple(thread)}, line {line}"
            raise KernelBug(f"{self.name}, {place}: {bug}") from None

    def _ordered(self) -> list[Index]:
        """The threads of a block in the order of this launch; the first axis is fastest."""
        z, y, x = (range(n) for n in reversed(self.block))
        threads = [Index(i, j, k) for k, j, i in product(z, y, x)]
        if self.order == "last":
            return threads[::-1]
        if self.order == "shuffled":
            warps = [threads[i : i + 32] for i in range(0, len(threads), 32)]
            for members in (warps, *warps):
                self.random.shuffle(members)
            return [thread for warp in warps for thread in warp]
        return threads
