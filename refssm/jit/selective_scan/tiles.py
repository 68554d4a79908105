"""Tiles of channels, one in each lane: between arrays (channels, time) and rows (time, lanes)."""

# pyright: reportCallIssue=false
# (pyright sees the compiler's argument of intrinsics)

from math import inf

from refssm.jit._compiling.parts import part
from refssm.jit._vectors.exponential import LOG2_E, bounded_decay, decay, exponent_bound, softplus
from refssm.jit._vectors.lanes import apart, beyond, splat, times_plus, total, where_flagged
from refssm.jit._vectors.scratch import (
    after,
    assign,
    at,
    columns,
    load,
    number,
    put,
    set_columns,
    store,
    width_of,
    zero_of,
)


@part
def gathered(source, d, t, width, rows):
    """Channels d … of source (d, l), from time t: lane j of row k is source[d + j, t + k], 0 beyond
    the last channel. States (d, n) likewise."""
    apart()
    lanes, rest, whole = width_of(rows), source.shape[0] - d, 0
    if rest >= lanes and source.strides[1] == source.itemsize:
        whole = width // lanes * lanes
        for k in range(0, whole, lanes):
            columns(source, d, t + k, after(rows, k))
    for k in range(whole, width):
        for j in range(lanes):
            put(rows, k * lanes + j, at(source, d + j, t + k) if j < rest else zero_of(rows))


@part
def scattered(rows, d, t, width, target):
    """The inverse of `gathered`; lanes beyond the last channel are dropped."""
    apart()
    lanes, rest, whole = width_of(rows), target.shape[0] - d, 0
    if rest >= lanes and target.strides[1] == target.itemsize:
        whole = width // lanes * lanes
        for k in range(0, whole, lanes):
            set_columns(target, d, t + k, after(rows, k))
    for k in range(whole, width):
        for j in range(lanes if rest >= lanes else rest):
            assign(target, d + j, t + k, number(rows, k * lanes + j))


@part
def rates_of(A, d, rates):
    """Rates of powers of two; returns a bound of |dt| below which `bounded_decay` may be used."""
    apart()
    gathered(A, d, 0, A.shape[1], rates)
    largest = 1e-30
    for i in range(A.shape[1] * width_of(rates)):
        rate = number(rates, i) * A.dtype.type(LOG2_E)
        put(rates, i, rate)
        if not abs(rate) <= largest:  # NaN, too
            largest = abs(rate) if rate == rate else inf
    return exponent_bound(zero_of(rates)) / largest if largest < inf else -1.0


@part
def steps_of(dt, dt_bias, d, t, width, steps, row):
    """dt of a tile, or softplus(dt + dt_bias); `row` is one row for the bias."""
    apart()
    gathered(dt, d, t, width, steps)
    if dt_bias is not None:
        gathered(dt_bias, d, 0, 1, row)
        for k in range(width):
            store(steps, k, softplus(load(steps, k) + load(row, 0)))


@part
def careful_steps(steps, width, bound, resets, d, t, careful):
    """Number k of `careful` is 1 where a channel of the tile begins at step k, or a decay of the
    block may be out of bounds, else 0."""
    apart()
    zero = zero_of(steps)
    outside = splat(zero)
    for k in range(width):
        outside = beyond(load(steps, k), bound, outside)
    everywhere = total(outside)
    alone = resets.shape[0] > 1
    last = resets.shape[0] - d if alone else 1
    last = last if last < width_of(steps) else width_of(steps)
    for k in range(width):
        mark = everywhere
        for j in range(last):
            if at(resets, d + j if alone else 0, t + k):
                mark = zero + 1
        put(careful, k, mark)


@part
def flags_of(resets, d, k, flags):
    """Lane j of row 0 is 1 where channel d + j begins again at step k."""
    apart()
    last = resets.shape[0] - 1
    for j in range(width_of(flags)):
        begins = at(resets, d + j if d + j < last else last, k)
        put(flags, j, 1 if begins else 0)


@part
def run(u, steps, rates, B, C, resets, d, t, width, careful, flags, x, y):
    """`width` steps from time t of the tile from channel d: y_k = C_k · x_k, and x goes on."""
    apart()
    zero = splat(zero_of(u))
    for k in range(width):
        step = load(steps, k)
        drive, y_k = step * load(u, k), zero
        if number(careful, k) != 0:
            flags_of(resets, d, t + k, flags)
            begins = load(flags, 0)
            for n in range(B.shape[1]):
                added = drive * at(B, t + k, n)
                x_n = times_plus(decay(step, load(rates, n)), load(x, n), added)
                x_n = where_flagged(begins, added, x_n)  # nothing leaks, not even NaN
                store(x, n, x_n)
                y_k = times_plus(x_n, at(C, t + k, n), y_k)
        else:
            for n in range(B.shape[1]):
                a = bounded_decay(step, load(rates, n))
                x_n = times_plus(a, load(x, n), drive * at(B, t + k, n))
                store(x, n, x_n)
                y_k = times_plus(x_n, at(C, t + k, n), y_k)
        store(y, k, y_k)


@part
def replay(u, steps, rates, B, C, resets, d, t, width, careful, flags, x, a, y):
    """`run` that keeps everything: row k·n of x has x_{k-1}, row k·n of a the decays of step k."""
    apart()
    zero, n = splat(zero_of(u)), B.shape[1]
    for k in range(width):
        step = load(steps, k)
        drive, y_k = step * load(u, k), zero
        if number(careful, k) != 0:
            flags_of(resets, d, t + k, flags)
            begins = load(flags, 0)
            for m in range(n):
                added, a_m = drive * at(B, t + k, m), decay(step, load(rates, m))
                x_m = times_plus(a_m, load(x, k * n + m), added)
                x_m = where_flagged(begins, added, x_m)
                store(a, k * n + m, a_m)
                store(x, (k + 1) * n + m, x_m)
                y_k = times_plus(x_m, at(C, t + k, m), y_k)
        else:
            for m in range(n):
                a_m = bounded_decay(step, load(rates, m))
                x_m = times_plus(a_m, load(x, k * n + m), drive * at(B, t + k, m))
                store(a, k * n + m, a_m)
                store(x, (k + 1) * n + m, x_m)
                y_k = times_plus(x_m, at(C, t + k, m), y_k)
        store(y, k, y_k)


@part
def pull_back(
    dy, u, steps, A, B, C, resets, d, t, width, careful, flags, x, a, g, by_A, by_B, by_C
):
    """g_k = C_k dy_k + a_{k+1} g_{k+1} from the last step of a block to the first; du replaces dy
    and ddt replaces u, dA is new, the gradients of B and C are added, one for each lane."""
    apart()
    zero, n = splat(zero_of(u)), B.shape[1]
    for m in range(n):
        store(by_A, m, zero)
    for k in range(width - 1, -1, -1):
        step, u_k, dy_k = load(steps, k), load(u, k), load(dy, k)
        drive, by_u, by_dt = step * u_k, zero, zero
        if number(careful, k) != 0:
            flags_of(resets, d, t + k, flags)
            begins, used = load(flags, 0), load(flags, 1)
            for m in range(n):
                row = k * n + m
                g_m = times_plus(dy_k, at(C, t + k, m), load(g, m))
                carried = where_flagged(begins, zero, load(a, row) * g_m)
                e = where_flagged(begins, zero, carried * load(x, row))  # 0·NaN is NaN
                by_u = times_plus(g_m, at(B, t + k, m), by_u)
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
                g_m = times_plus(dy_k, at(C, t + k, m), load(g, m))
                carried = load(a, row) * g_m
                e = carried * load(x, row)
                by_u = times_plus(g_m, at(B, t + k, m), by_u)
                by_dt = times_plus(e, load(A, m), by_dt)
                store(by_A, m, times_plus(e, step, load(by_A, m)))
                store(by_B, row, times_plus(g_m, drive, load(by_B, row)))
                store(by_C, row, times_plus(dy_k, load(x, row + n), load(by_C, row)))
                store(g, m, carried)
        store(dy, k, step * by_u)
        store(u, k, times_plus(u_k, by_u, by_dt))
