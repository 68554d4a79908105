"""What the kernels of gated units share: rows of adjacent entries, blocks of time."""

import numpy as np

from refssm.jit._compiling.parts import part

CACHED = 2**17  # bytes of states that the way back finds in the cache of the core


@part
def steps_of_block(l, n, size):
    """√l steps, or as many as have their states in the cache."""
    return max(1, min(l, max(CACHED // (size * max(1, n)), int(np.sqrt(l)))))


@part
def copied(x, y):
    """The entries of x, in y."""
    for n in range(y.size):
        y[n] = x[n]


def with_rows(*arrays):
    """Each array with adjacent entries along its last axis."""
    return [
        x if x.shape[-1] < 2 or x.strides[-1] == x.itemsize else np.ascontiguousarray(x)
        for x in arrays
    ]
