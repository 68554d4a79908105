"""Tiles of channels, one in each lane: between arrays (channels, time) and rows (time, lanes)."""

from math import inf

import numpy as np
from numba import njit

from refssm.jit._exponential import LOG2_E, bounded_decay, decay, exponent_bound
from refssm.jit._lanes import (
    beyond,
    load,
    splat,
    store,
    times_plus,
    total,
    transpose,
    where_flagged,
)

STEPS = 64  # a tile's rows of u, dt and y stay in the first cache


@njit
def gathered(source, d, t, width, rows):
    """Channels d … of source (d, l), from time t: rows[k, j] = source[d + j, t + k], 0 beyond the
    last channel. States (d, n) likewise."""
    lanes, whole = rows.shape[1], 0
    channels = min(lanes, source.shape[0] - d)
    if channels == lanes and source.strides[1] == source.itemsize:
        whole = width // lanes * lanes
        for k in range(0, whole, lanes):
            transpose(source, d, t + k, rows, k, 0)
    for j in range(channels):
        for k in range(whole, width):
            rows[k, j] = source[d + j, t + k]
    for j in range(channels, lanes):
        for k in range(width):
            rows[k, j] = 0


@njit
def scattered(rows, d, t, width, target):
    """The inverse of `gathered`; lanes beyond the last channel are dropped."""
    lanes, whole = rows.shape[1], 0
    channels = min(lanes, target.shape[0] - d)
    if channels == lanes and target.strides[1] == target.itemsize:
        whole = width // lanes * lanes
        for k in range(0, whole, lanes):
            transpose(rows, k, 0, target, d, t + k)
    for j in range(channels):
        for k in range(whole, width):
            target[d + j, t + k] = rows[k, j]


@njit
def rates_of(A, d, rates):
    """Rates of powers of two; returns a bound of |dt| below which `bounded_decay` may be used."""
    gathered(A, d, 0, A.shape[1], rates)
    largest, log2_e = rates.dtype.type(1e-30), rates.dtype.type(LOG2_E)
    for n in range(rates.shape[0]):
        for j in range(rates.shape[1]):
            rates[n, j] *= log2_e
            if not abs(rates[n, j]) <= largest:  # NaN, too
                largest = abs(rates[n, j]) if rates[n, j] == rates[n, j] else inf
    return exponent_bound(rates.itemsize) / largest if largest < inf else -1.0


@njit
def careful_steps(steps, width, bound, resets, d, t, careful):
    """careful[k]: a channel of the tile begins at step k, or a decay of the block may be beyond the
    bound."""
    lanes, zero = steps.shape[1], steps.dtype.type(0)
    outside = splat(zero)
    for k in range(width):
        outside = beyond(load(steps, k), steps.dtype.type(bound), outside)
    first = d if resets.shape[0] > 1 else 0
    last = min(first + lanes, resets.shape[0])
    everywhere = total(outside) != 0
    for k in range(width):
        careful[k] = everywhere
        for j in range(first, last):
            careful[k] |= resets[j, t + k]


@njit
def flags_of(resets, d, k, flags):
    """flags[0, j] is 1 where channel d + j begins again at step k."""
    for j in range(flags.shape[1]):
        flags[0, j] = resets[min(d + j, resets.shape[0] - 1), k]


@njit
def run(u, steps, rates, B, C, resets, d, t, width, careful, flags, x, y):
    """`width` steps from time t of the tile from channel d: y_k = C_k · x_k, and x goes on."""
    zero = splat(u.dtype.type(0))
    for k in range(width):
        step = load(steps, k)
        drive, y_k = step * load(u, k), zero
        if careful[k]:
            flags_of(resets, d, t + k, flags)
            begins = load(flags, 0)
            for n in range(rates.shape[0]):
                added = drive * B[t + k, n]
                x_n = times_plus(decay(step, load(rates, n)), load(x, n), added)
                x_n = where_flagged(begins, added, x_n)  # nothing leaks, not even NaN
                store(x, n, x_n)
                y_k = times_plus(x_n, C[t + k, n], y_k)
        else:
            for n in range(rates.shape[0]):
                a = bounded_decay(step, load(rates, n))
                x_n = times_plus(a, load(x, n), drive * B[t + k, n])
                store(x, n, x_n)
                y_k = times_plus(x_n, C[t + k, n], y_k)
        store(y, k, y_k)
