"""Tiles of channels, one in each lane: between arrays (channels, time) and rows (time, lanes)."""

# pyright: reportCallIssue=false
# (pyright sees the compiler's argument of intrinsics)

from math import inf

import numpy as np
from numba import float64

from refssm.jit._exponential import LOG2_E, bounded_decay, decay, exponent_bound, softplus
from refssm.jit._lanes import (
    apart,
    beyond,
    inner,
    load,
    splat,
    store,
    times_plus,
    total,
    transpose,
    where_flagged,
)
from refssm.jit._parts import part

START, ONE = np.intp(0), np.intp(1)  # no literals: Numba compiles functions of those apart


@part
def gathered(source, d, t, width, rows):
    """Channels d … of source (d, l), from time t: rows[k, j] = source[d + j, t + k], 0 beyond the
    last channel. States (d, n) likewise."""
    apart()
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


@part
def scattered(rows, d, t, width, target):
    """The inverse of `gathered`; lanes beyond the last channel are dropped."""
    apart()
    lanes, whole = rows.shape[1], 0
    channels = min(lanes, target.shape[0] - d)
    if channels == lanes and target.strides[1] == target.itemsize:
        whole = width // lanes * lanes
        for k in range(0, whole, lanes):
            transpose(rows, k, 0, target, d, t + k)
    for j in range(channels):
        for k in range(whole, width):
            target[d + j, t + k] = rows[k, j]


@part(returns=float64)
def rates_of(A, d, rates):
    """Rates of powers of two; returns a bound of |dt| below which `bounded_decay` may be used."""
    apart()
    gathered(A, d, START, A.shape[1], rates)
    largest, log2_e = rates.dtype.type(1e-30), rates.dtype.type(LOG2_E)
    for n in range(rates.shape[0]):
        for j in range(rates.shape[1]):
            rates[n, j] *= log2_e
            if not abs(rates[n, j]) <= largest:  # NaN, too
                largest = abs(rates[n, j]) if rates[n, j] == rates[n, j] else inf
    return exponent_bound(rates.itemsize) / largest if largest < inf else -1.0


@part
def steps_of(dt, dt_bias, d, t, width, steps, row):
    """dt of a tile, or softplus(dt + dt_bias); `row` is one row for the bias."""
    apart()
    gathered(dt, d, t, width, steps)
    if dt_bias is not None:
        gathered(dt_bias, d, START, ONE, row)
        for k in range(width):
            store(steps, k, softplus(load(steps, k) + load(row, 0)))


@part
def careful_steps(steps, width, bound, resets, d, t, careful):
    """careful[k]: a channel of the tile begins at step k, or a decay of the block may be out of
    bounds."""
    apart()
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


@part
def flags_of(resets, d, k, flags):
    """flags[0, j] is 1 where channel d + j begins again at step k."""
    apart()
    for j in range(flags.shape[1]):
        flags[0, j] = resets[min(d + j, resets.shape[0] - 1), k]


@part
def run(u, steps, rates, B, C, resets, d, t, width, careful, flags, x, y):
    """`width` steps from time t of the tile from channel d: y_k = C_k · x_k, and x goes on."""
    apart()
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


@part
def replay(u, steps, rates, B, C, resets, d, t, width, careful, flags, x, a, y):
    """`run` that keeps everything: row k·n of x has x_{k-1}, row k·n of a the decays of step k."""
    apart()
    zero, n = splat(u.dtype.type(0)), rates.shape[0]
    for k in range(width):
        step = load(steps, k)
        drive, y_k = step * load(u, k), zero
        if careful[k]:
            flags_of(resets, d, t + k, flags)
            begins = load(flags, 0)
            for m in range(n):
                added, a_m = drive * B[t + k, m], decay(step, load(rates, m))
                x_m = times_plus(a_m, load(x, k * n + m), added)
                x_m = where_flagged(begins, added, x_m)
                store(a, k * n + m, a_m)
                store(x, (k + 1) * n + m, x_m)
                y_k = times_plus(x_m, C[t + k, m], y_k)
        else:
            for m in range(n):
                a_m = bounded_decay(step, load(rates, m))
                x_m = times_plus(a_m, load(x, k * n + m), drive * B[t + k, m])
                store(a, k * n + m, a_m)
                store(x, (k + 1) * n + m, x_m)
                y_k = times_plus(x_m, C[t + k, m], y_k)
        store(y, k, y_k)


@part
def pull_back(
    dy, u, steps, A, B, C, resets, d, t, width, careful, flags, x, a, g, by_A, by_B, by_C
):
    """g_k = C_k dy_k + a_{k+1} g_{k+1} from the last step of a block to the first; du replaces dy
    and ddt replaces u. Gradients of A, B and C are added, one for each lane."""
    apart()
    zero, n = splat(u.dtype.type(0)), A.shape[0]
    for k in range(width - 1, -1, -1):
        step, u_k, dy_k = load(steps, k), load(u, k), load(dy, k)
        drive, by_u, by_dt = step * u_k, zero, zero
        if careful[k]:
            flags_of(resets, d, t + k, flags)
            begins, used = load(flags, 0), load(flags, 1)
            for m in range(n):
                row = k * n + m
                g_m = times_plus(dy_k, C[t + k, m], load(g, m))
                carried = where_flagged(begins, zero, load(a, row) * g_m)
                e = where_flagged(begins, zero, carried * load(x, row))  # 0·NaN is NaN
                by_u = times_plus(g_m, B[t + k, m], by_u)
                by_dt = times_plus(e, load(A, m), by_dt)
                store(by_A, m, times_plus(e, step, load(by_A, m)))
                B_m, C_m = load(by_B, row), load(by_C, row)
                store(by_B, row, where_flagged(used, times_plus(g_m, drive, B_m), B_m))
                C_added = times_plus(dy_k, load(x, row + n), C_m)
                store(by_C, row, where_flagged(used, C_added, C_m))
                store(g, m, carried)
        else:
            for m in range(n):
                row = k * n + m
                g_m = times_plus(dy_k, C[t + k, m], load(g, m))
                carried = load(a, row) * g_m
                e = carried * load(x, row)
                by_u = times_plus(g_m, B[t + k, m], by_u)
                by_dt = times_plus(e, load(A, m), by_dt)
                store(by_A, m, times_plus(e, step, load(by_A, m)))
                store(by_B, row, times_plus(g_m, drive, load(by_B, row)))
                store(by_C, row, times_plus(dy_k, load(x, row + n), load(by_C, row)))
                store(g, m, carried)
        store(dy, k, step * by_u)
        store(u, k, times_plus(u_k, by_u, by_dt))
