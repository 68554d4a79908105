"""Work shared by threads: the pieces of a batch, or the items of a list.

NumPy releases the GIL while a compiled gufunc runs, and SciPy while it transforms, so threads of
Python are enough. Numba's own parallel loops are not used: a process that forks after its OpenMP
layer has worked is ended, and so is one in which two threads call its workqueue at the same time.

`each_on_one_core` computes each item of a list on one core, whose caches keep its arrays.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import pairwise
from math import prod
from threading import Lock
from typing import Any

import numba
import numpy as np
from threadpoolctl import ThreadpoolController

SMALL = 2**16  # a piece of this many steps of the innermost loop takes longer than its start
PIECES = 4  # pieces for each thread: one that the system holds up leaves its pieces to the others


def threads() -> int:
    """`numba.get_num_threads()`, without its side effect: it starts Numba's own threads."""
    try:
        numba.threading_layer()
    except ValueError:  # not started, so nobody has set another number
        return numba.config.NUMBA_NUM_THREADS
    return numba.get_num_threads()


@cache
def _pool() -> ThreadPoolExecutor:
    """The helpers of every call: with the caller as many as there are threads."""
    return ThreadPoolExecutor(max(1, numba.config.NUMBA_NUM_THREADS - 1), "refssm")


if hasattr(os, "register_at_fork"):
    # a forked child has the pool but not its threads, and would wait for them for ever
    os.register_at_fork(after_in_child=_pool.cache_clear)


_alone = ContextVar("alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Calls inside use one thread: the other threads have work of their own."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def is_alone() -> bool:
    """Whether this is inside `alone`."""
    return _alone.get()


def over_threads(function: Callable, items: Iterable) -> list:
    """`[function(item) for item in items]`, each on the next free thread."""
    waiting = deque(enumerate(items))
    results: list = [None] * len(waiting)

    def work() -> None:
        while waiting:
            try:
                place, item = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                results[place] = function(item)
            except BaseException:
                waiting.clear()  # the others do not go on
                raise

    helpers, count = [], 0 if is_alone() else min(threads(), len(waiting)) - 1
    try:
        for _ in range(count):
            # a copy of the context each: NumPy keeps in it what to do about overflow and NaN
            helpers.append(_pool().submit(copy_context().run, work))
        work()
    finally:
        waiting.clear()
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()
    return results


class Threaded:
    """A gufunc whose longest batch axis is shared by threads; every piece is computed alone, so the
    result does not depend on their number.
    """

    def __init__(self, kernel, signature: str):
        self.kernel = kernel
        cores = re.findall(r"\(([^)]*)\)", signature)
        dims = [tuple(core.split(",")) if core else () for core in cores]
        count = signature.partition("->")[0].count("(")
        self.inputs, self.outputs = dims[:count], dims[count:]

    def __call__(self, *arrays) -> Any:
        """The outputs, with all batch axes."""
        leading = [a.shape[: a.ndim - len(d)] for a, d in zip(arrays, self.inputs, strict=True)]
        batch, sizes = np.broadcast_shapes(*leading), self._sizes(arrays)
        work = prod(batch) * prod(max(1, size) for size in sizes.values())
        longest = max(batch, default=1)
        pieces = min(work // SMALL, PIECES * threads(), longest)
        if pieces < 2 or threads() < 2 or is_alone():
            return self.kernel(*arrays)
        kernel = self.kernel.of(tuple(a.dtype for a in arrays))
        axis = batch.index(longest) - len(batch)
        given = [_split(a, axis, len(d), pieces) for a, d in zip(arrays, self.inputs, strict=True)]
        results = self._empty(kernel, arrays, batch, sizes)
        parts = [
            _split(y, axis, len(d), pieces) for y, d in zip(results, self.outputs, strict=True)
        ]
        over_threads(
            lambda i: kernel(*(g[i] for g in given), out=tuple(p[i] for p in parts)),
            range(pieces),
        )
        return results[0] if len(results) == 1 else tuple(results)

    def _sizes(self, arrays) -> dict[str, int]:
        """The core dimensions by name."""
        sizes = {}
        for array, dims in zip(arrays, self.inputs, strict=True):
            sizes.update(zip(dims, array.shape[array.ndim - len(dims) :], strict=True))
        return sizes

    def _empty(self, kernel, arrays, batch, sizes) -> list[np.ndarray]:
        """New outputs, of the types that the kernel has for these arguments."""
        kinds = _types(kernel, tuple(a.dtype for a in arrays), len(self.outputs))
        shapes = ((*batch, *(sizes[d] for d in dims)) for dims in self.outputs)
        return [np.empty(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]


@cache
def _types(kernel, given, count) -> tuple[np.dtype, ...]:
    """The types of the outputs."""
    return kernel.resolve_dtypes((*given, *(None,) * count))[-count:]


def _split(array: np.ndarray, axis: int, core: int, pieces: int) -> list[np.ndarray]:
    """Views of an array along a batch axis; the array itself each time where it lacks the axis."""
    axis += array.ndim - core
    if axis < 0 or array.shape[axis] == 1:
        return [array] * pieces
    length = array.shape[axis]
    borders = [length * i // pieces for i in range(pieces + 1)]
    whole = (slice(None),) * axis
    return [array[*whole, slice(*w)] for w in pairwise(borders)]


ONE_AT_A_TIME = Lock()  # of several threads that call: each uses all cores, and sets BLAS's threads


def each_on_one_core(function: Callable, items: Iterable) -> list:
    """`[function(item) for item in items]`, where a call uses one thread, in BLAS too: two calls of
    a threaded BLAS wait for each other."""
    if is_alone():
        return [function(item) for item in items]

    def apart(item):
        with alone():
            return function(item)

    with ONE_AT_A_TIME, _libraries().limit(limits=1):
        return over_threads(apart, items)


@cache
def _libraries() -> ThreadpoolController:
    """The thread pools of the libraries in this process; called once, before the first items."""
    _keep_freed_memory()
    return ThreadpoolController()


def _keep_freed_memory() -> None:
    """Let glibc keep the memory of freed arrays.

    It gives memory back to the system beyond twice the size of the largest array freed so far, of
    at most 32 MB. Each array that is made again then costs a page fault for every 4096 bytes.
    """
    np.empty(2**25 - 2**16, np.uint8)
