"""Arrays of the simulator: strict about indices and types, and about threads that meet in them."""

from __future__ import annotations

from typing import Any

import numpy as np

MANY = "several threads"
SHARED_LIMIT = 48 * 1024  # bytes that a block gets without asking


class KernelBug(AssertionError):
    """What a kernel does wrong, and where."""


class Memory:
    """The arrays of one launch, and which thread runs now."""

    def __init__(self):
        self.thread: Any = None
        self.block: Any = None
        self.outer: dict[Any, Watched] = {}
        self.shared: dict[Any, Watched] = {}

    def array(self, given: np.ndarray) -> Watched:
        """An argument; the same memory is watched once."""
        if not given.flags.c_contiguous:
            raise KernelBug("an argument is not in one piece of memory, its last axis fastest")
        key = given.ctypes.data if given.size else id(given), given.shape, given.dtype
        return self.outer.setdefault(key, Watched(self, given))

    def shared_array(self, place: Any, shape: Any, dtype: Any) -> Watched:
        """The shared array that this place in the source makes; NaN at first."""
        if place not in self.shared:
            array = np.empty(shape, dtype)
            array.view(np.uint8)[...] = 255  # NaN, and −1 for whole numbers
            self.shared[place] = Watched(self, array)
            size = sum(x.size * x.dtype.itemsize for x in self.shared.values())
            if size > SHARED_LIMIT:
                raise KernelBug(f"{size} bytes of shared memory, a block gets {SHARED_LIMIT}")
        return self.shared[place]

    def begin_block(self, place: Any) -> None:
        """Shared memory is new; uses of other arrays by the block before stay known."""
        self.block, self.shared = place, {}

    def barrier(self) -> None:
        """All threads of the block have met."""
        for array in (*self.outer.values(), *self.shared.values()):
            array.meet()


class Watched:
    """An array that checks each use."""

    def __init__(self, memory: Memory, array: np.ndarray):
        self._memory, self._array = memory, array
        self.shape, self.dtype, self.ndim, self.size = (
            array.shape, array.dtype, array.ndim, array.size,
        )  # fmt: skip
        self._whole = array.dtype.kind in "biu"
        self._used: dict[Any, list[Any]] = {}  # since the barrier: who wrote, who read
        self._written: dict[Any, Any] = {}  # by which block
        self._read: dict[Any, Any] = {}

    def meet(self) -> None:
        """A barrier: what was written before is seen by all threads of the block."""
        self._used.clear()

    def _place(self, index: Any) -> tuple[int, ...]:
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != self.ndim:
            raise KernelBug(f"index {index} of an array with {self.ndim} axes")
        for i, n in zip(index, self.shape, strict=True):
            if type(i) is not int:
                raise KernelBug(f"index {i!r} is a {type(i).__name__}, wanted a whole number")
            if not 0 <= i < n:
                raise KernelBug(f"index {index} is outside of an array of shape {self.shape}")
        return index

    def __getitem__(self, index: Any) -> Any:
        place, thread = self._place(index), self._memory.thread
        used = self._used.setdefault(place, [None, None])
        if used[0] is not None and used[0] != thread:
            raise KernelBug(f"reads [{index}], which thread {tuple(used[0])} wrote: no barrier")
        block = self._memory.block
        if self._written.get(place, block) != block:
            raise KernelBug(f"reads [{index}], which block {tuple(self._written[place])} wrote")
        if self._read.setdefault(place, block) != block:
            self._read[place] = MANY
        used[1] = thread if used[1] in (None, thread) else MANY
        value = self._array[place]
        return int(value) if self._whole else value

    def __setitem__(self, index: Any, value: Any) -> None:
        place, thread = self._place(index), self._memory.thread
        self._fits(value)
        used = self._used.setdefault(place, [None, None])
        for who, what in zip(used, ("wrote", "read"), strict=True):
            if who is not None and who != thread:
                who = who if who is MANY else f"thread {tuple(who)}"
                raise KernelBug(f"writes [{index}], which {who} {what}: no barrier")
        block = self._memory.block
        for others, what in (self._written, "wrote"), (self._read, "read"):
            if others.get(place, block) != block:
                raise KernelBug(f"writes [{index}], which another block {what}")
        self._written[place] = block
        used[0] = thread
        self._array[place] = value

    def _fits(self, value: Any) -> None:
        """Numba would convert without a word, and compute in the wider type until here."""
        kind = getattr(value, "dtype", type(value).__name__)
        if kind != ("int" if self._whole else self.dtype):
            raise KernelBug(f"stores a {kind} in an array of {self.dtype}")

    def updated(self, index: Any, change: Any) -> Any:
        """An atomic update, in the order of threads; the value before."""
        if self.dtype.kind == "c":
            raise KernelBug("atomics on complex numbers do not compile")
        place = self._place(index)
        before = self._array[place]
        after = change(int(before) if self._whole else before)
        self._fits(after)
        self._array[place] = after
        return int(before) if self._whole else before
