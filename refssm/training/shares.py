"""Gradients of a batch in shares, each on one core: a share of few sequences stays in its caches.

A batch is computed whole if a norm averages over it, if it is no larger than a share, or if the
operators have no `each_on_one_core`. Otherwise gradients of shares do not depend on the number of
cores: neither do the shares, and each is computed on one.
"""

from collections.abc import Callable
from functools import reduce

import numpy as np

from refssm.layers._parts.norms import NORMS
from refssm.layers.model import Arrays, Model

STEPS = 2**12  # of time in a share: 2 MB in each array of 128 channels


def gradients(
    model: Model, ops, p: Arrays, u: np.ndarray, cotangent: Callable, masks=None, gaps=None
):
    """As `model.gradients`; `cotangent(outputs, rows)` is for these rows of the batch."""
    on_cores, count = getattr(ops, "each_on_one_core", None), _count(model, u)
    if on_cores is None or count < 2:
        return model.gradients(ops, p, u, lambda y: cotangent(y, slice(None)), masks, gaps)
    borders = [len(u) * i // count for i in range(count + 1)]
    layers, back = model.prepared(ops, p, model.times(u)[-1])

    def of_rows(rows):
        own = masks and [mask[rows] for mask in masks]
        its = None if gaps is None else gaps[rows]
        return model.run(ops, p, layers, u[rows], lambda y: cotangent(y, rows), own, its)

    outputs, grads, _ = zip(*on_cores(of_rows, map(slice, borders, borders[1:])), strict=True)
    total = {name: reduce(np.add, (g[name] for g in grads)) for name in grads[0]}
    return np.concatenate(outputs), back(total), {}


def sequences(l: int) -> int:
    """How many sequences a share has."""
    return max(1, STEPS // max(1, l))


def _count(model: Model, u: np.ndarray) -> int:
    """In how many shares: one if a norm averages over the batch, or if there is no batch."""
    times = model.times(u)
    if NORMS[model.norm].averages(1) or len(times) < 2:
        return 1
    return -(-len(u) // sequences(times[-1]))
