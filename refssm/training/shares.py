"""Gradients of a batch in shares, one on each core: a share of few sequences stays in its caches.

The shares do not depend on the number of cores, and each is computed on one, so neither does the
result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from refssm.jit._compiling.threads import alone, over_threads
from refssm.layers.model import Arrays, Model
from refssm.layers.norms import NORMS

STEPS = 2**12  # of time in a share: 2 MB in each array of 128 channels


def gradients(model: Model, ops, p: Arrays, u: np.ndarray, cotangent: Callable, masks=None):
    """As `model.gradients`; `cotangent(outputs, rows)` is for these rows of the batch."""
    count = _count(model, u)
    if count < 2:
        return model.gradients(ops, p, u, lambda y: cotangent(y, slice(None)), masks)
    borders = [len(u) * i // count for i in range(count + 1)]

    def of(rows):
        own = masks and [mask[rows] for mask in masks]
        with alone():
            return model.gradients(ops, p, u[rows], lambda y: cotangent(y, rows), own)

    with _libraries().limit(limits=1):  # BLAS has threads of its own, and they wait for each other
        parts = over_threads(of, map(slice, borders, borders[1:]))
    outputs, grads, _ = zip(*parts, strict=True)
    return np.concatenate(outputs), {name: sum(g[name] for g in grads) for name in p}, {}


def _count(model: Model, u: np.ndarray) -> int:
    """In how many shares: one if a norm averages over the batch."""
    if NORMS[model.norm].averages(1):
        return 1
    return min(len(u), -(-u.shape[0] * u.shape[1] // STEPS))


@cache
def _libraries() -> ThreadpoolController:
    """The thread pools of the libraries in this process."""
    # glibc gives freed memory back to the system beyond twice the size of the largest array freed
    # so far, of at most 32 MB; to get it again and again takes a quarter of a step of S5
    np.empty(2**25 - 2**16, np.uint8)
    return ThreadpoolController()
