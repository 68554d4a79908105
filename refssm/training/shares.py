"""Gradients of a batch in shares, one on each core: a share of few sequences stays in its caches.

The shares do not depend on the number of cores, and each is computed on one, so neither does the
result. Operators that do not work on cores, or that have no function `each_on_one_core`, get the
whole batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from refssm.layers._parts.norms import NORMS
from refssm.layers.model import Arrays, Model

STEPS = 2**12  # of time in a share: 2 MB in each array of 128 channels


def gradients(model: Model, ops, p: Arrays, u: np.ndarray, cotangent: Callable, masks=None):
    """As `model.gradients`; `cotangent(outputs, rows)` is for these rows of the batch."""
    each, count = getattr(ops, "each_on_one_core", None), _count(model, u)
    if each is None or count < 2:
        return model.gradients(ops, p, u, lambda y: cotangent(y, slice(None)), masks)
    borders = [len(u) * i // count for i in range(count + 1)]
    layers, back = model.prepared(ops, p, u.shape[-2])

    def of(rows):
        own = masks and [mask[rows] for mask in masks]
        return model.run(ops, p, layers, u[rows], lambda y: cotangent(y, rows), own)

    outputs, grads, _ = zip(*each(of, map(slice, borders, borders[1:])), strict=True)
    total = {name: reduce(np.add, (g[name] for g in grads)) for name in grads[0]}
    return np.concatenate(outputs), back(total), {}


def _count(model: Model, u: np.ndarray) -> int:
    """In how many shares: one if a norm averages over the batch."""
    if NORMS[model.norm].averages(1):
        return 1
    return min(len(u), -(-u.shape[0] * u.shape[1] // STEPS))
