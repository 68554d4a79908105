"""Items of a list, each computed on one core, so that its arrays stay in the core's caches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from threading import Lock

import numpy as np
from threadpoolctl import ThreadpoolController

from refssm.jit._compiling.threads import alone, is_alone, over_threads

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
