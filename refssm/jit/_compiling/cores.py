"""Items of a list, each on one core: what a core works on stays in its caches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from refssm.jit._compiling.threads import alone, over_threads


def each_on_one_core(function: Callable, items: Iterable) -> list:
    """`[function(item) for item in items]`, where a call uses one thread, in BLAS too: two calls of
    a threaded BLAS wait for each other."""

    def apart(item):
        with alone():
            return function(item)

    with _libraries().limit(limits=1):
        return over_threads(apart, items)


@cache
def _libraries() -> ThreadpoolController:
    """The thread pools of the libraries in this process."""
    # glibc gives freed memory back to the system beyond twice the size of the largest array freed
    # so far, of at most 32 MB; to get it again and again takes a quarter of a step of S5
    np.empty(2**25 - 2**16, np.uint8)
    return ThreadpoolController()
