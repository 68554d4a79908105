"""The compiled adjoint of real selective scans, with channels in lanes as in `forward`.

The states before blocks of √l steps are stored, and the states and decays of one block computed
again: O(n √l) numbers a channel [chen2016training]. dB and dC are collected in each lane over all
tiles of a piece; lanes are summed once a block.
"""

# pyright: reportCallIssue=false
# (pyright sees the compiler's argument of intrinsics)

from math import ceil, sqrt

import numpy as np

from refssm.jit._exponential import sigmoid, silu, silu_slope
from refssm.jit._lanes import apart, load, scratch, splat, store, times_plus, total
from refssm.jit._parts import part
from refssm.jit.selective_scan.channels import over_channels
from refssm.jit.selective_scan.tiles import (
    ONE,
    START,
    careful_steps,
    gathered,
    pull_back,
    rates_of,
    replay,
    run,
    scattered,
    steps_of,
)


@over_channels(
    "(d,l),(d,n),(d,l),(d,l),(d,n),(l,n),(l,n),(d,n),(r,l)->(d,l),(d,l),(d,n),(l,n),(l,n),(d,n)"
)
def scan_back(dy, dx, u, dt, A, B, C, x0, resets, du, ddt, dA, dB, dC, dx0):
    """g_k = C_k dy_k + a_{k+1} g_{k+1} with a = e^{dt A}, and what follows from it."""
    _back(
        dy, dx, u, dt, A, B, C, None, None, None, x0, resets,
        du, ddt, dA, dB, dC, None, None, None, dx0,
    )  # fmt: skip


@over_channels(
    "(d,l),(d,n),(d,l),(d,l),(d,n),(l,n),(l,n),(d,i),(d,l),(d,i),(d,n),(r,l)"
    "->(d,l),(d,l),(d,n),(l,n),(l,n),(d,i),(d,l),(d,i),(d,n)"
)
def gated_back(
    dy, dx, u, dt, A, B, C, D, z, dt_bias, x0, resets,
    du, ddt, dA, dB, dC, dD, dz, ddt_bias, dx0,
):  # fmt: skip
    """The same for softplus, skip and gate around it."""
    _back(
        dy, dx, u, dt, A, B, C, D, z, dt_bias, x0, resets,
        du, ddt, dA, dB, dC, dD, dz, ddt_bias, dx0,
    )  # fmt: skip


@part
def _back(
    dy, dx, u, dt, A, B, C, D, z, dt_bias, x0, resets,
    du, ddt, dA, dB, dC, dD, dz, ddt_bias, dx0,
):  # fmt: skip
    """All gradients of one piece, block by block from the last; Numba drops what is None."""
    apart()
    n, l = A.shape[1], u.shape[1]
    lanes = 64 // du.itemsize
    q = max(1, min(l, lanes * ceil(sqrt(l) / lanes)))
    tiles = ceil(u.shape[0] / lanes)
    starts = scratch(ceil(l / q) * tiles * n, du)
    _run_to_blocks(u, dt, A, B, C, dt_bias, x0, resets, q, starts)
    ends, by_A = scratch(tiles * n, du), scratch(tiles * n, du)
    sums, by_B, by_C = scratch(2 * tiles, du), scratch(q * n, du), scratch(q * n, du)
    x, a = scratch((q + 1) * n, du), scratch(q * n, du)
    rows, careful = scratch(6 * q + 3 * n + 2, du), np.empty(q, np.bool_)
    for i in range(tiles):
        gathered(dx, i * lanes, START, n, ends[i * n : (i + 1) * n])
    for block in range(ceil(l / q) - 1, -1, -1):
        for i in range(tiles):
            first = (block * tiles + i) * n
            for m in range(n):
                store(x, m, load(starts, first + m))
            _tile_back(
                dy, u, dt, A, B, C, D, z, dt_bias, resets, i, block * q, q, rows, careful, x, a,
                ends[i * n : (i + 1) * n], by_A[i * n : (i + 1) * n], by_B, by_C,
                sums[2 * i : 2 * i + 2], du, ddt, dz,
            )  # fmt: skip
        _sum_lanes(by_B, block * q, dB)
        _sum_lanes(by_C, block * q, dC)
    for i in range(tiles):
        scattered(by_A[i * n : (i + 1) * n], i * lanes, START, n, dA)
        scattered(ends[i * n : (i + 1) * n], i * lanes, START, n, dx0)
        if z is not None:
            scattered(sums[2 * i : 2 * i + 1], i * lanes, START, ONE, dD)
            scattered(sums[2 * i + 1 : 2 * i + 2], i * lanes, START, ONE, ddt_bias)


@part
def _run_to_blocks(u, dt, A, B, C, dt_bias, x0, resets, q, starts):
    """The states before each block of q steps: row (block · tiles + tile) · n + m of `starts`."""
    apart()
    n, l, lanes = A.shape[1], u.shape[1], starts.shape[1]
    tiles = ceil(u.shape[0] / lanes)
    rows, careful = scratch(3 * q + 2 * n + 1, starts), np.empty(q, np.bool_)
    inputs, steps, outputs = rows[:q], rows[q : 2 * q], rows[2 * q : 3 * q]
    rates, state, flags = rows[3 * q : 3 * q + n], rows[3 * q + n : 3 * q + 2 * n], rows[-1:]
    for i in range(tiles):
        d = i * lanes
        bound = rates_of(A, d, rates)
        gathered(x0, d, START, n, state)
        for t in range(0, l, q):
            for m in range(n):
                store(starts, (t // q * tiles + i) * n + m, load(state, m))
            if t + q < l:
                gathered(u, d, t, q, inputs)
                steps_of(dt, dt_bias, d, t, q, steps, flags)
                careful_steps(steps, q, bound, resets, d, t, careful)
                run(inputs, steps, rates, B, C, resets, d, t, q, careful, flags, state, outputs)


@part
def _tile_back(
    dy, u, dt, A, B, C, D, z, dt_bias, resets, i, t, q, rows, careful, x, a,
    g, by_A, by_B, by_C, sums, du, ddt, dz,
):  # fmt: skip
    """One block of one tile; `g` becomes the cotangent of the state before it."""
    apart()
    n, lanes = A.shape[1], rows.shape[1]
    d, width = i * lanes, min(q, u.shape[1] - t)
    inputs, steps, cotangents = rows[:q], rows[q : 2 * q], rows[2 * q : 3 * q]
    outputs, gates, slopes = rows[3 * q : 4 * q], rows[4 * q : 5 * q], rows[5 * q : 6 * q]
    rates, own_A = rows[6 * q : 6 * q + n], rows[6 * q + n : 6 * q + 2 * n]
    own, flags = rows[6 * q + 2 * n : 6 * q + 3 * n], rows[6 * q + 3 * n :]
    bound = rates_of(A, d, rates)
    gathered(A, d, START, n, own_A)
    gathered(u, d, t, width, inputs)
    gathered(dy, d, t, width, cotangents)
    steps_of(dt, dt_bias, d, t, width, steps, flags)
    careful_steps(steps, width, bound, resets, d, t, careful)
    replay(inputs, steps, rates, B, C, resets, d, t, width, careful, flags, x, a, outputs)
    if z is not None:
        gathered(z, d, t, width, gates)
        gathered(D, d, START, ONE, flags)
        _gate_back(cotangents, inputs, outputs, gates, load(flags, 0), width, sums)
        scattered(gates, d, t, width, dz)
        steps_of(dt, None, d, t, width, slopes, flags)
        gathered(dt_bias, d, START, ONE, flags)
        for k in range(width):
            store(slopes, k, sigmoid(load(slopes, k) + load(flags, 0)))
    channels = min(lanes, u.shape[0] - d)
    for j in range(lanes):
        flags[1, j] = j < channels
    if channels < lanes:
        careful[:] = True
    for m in range(n):
        store(own, m, splat(du.dtype.type(0)))
    pull_back(
        cotangents, inputs, steps, own_A, B, C, resets, d, t, width, careful, flags, x, a, g,
        own, by_B, by_C,
    )  # fmt: skip
    for m in range(n):
        store(by_A, m, load(by_A, m) + load(own, m))
    if z is not None:
        _skip_and_slopes(cotangents, inputs, outputs, slopes, width, sums)
    scattered(cotangents, d, t, width, du)
    scattered(inputs, d, t, width, ddt)


@part
def _gate_back(cotangents, inputs, outputs, gates, D, width, sums):
    """ds = dy silu(z) in place of dy, D ds in place of y, dz in place of z; dD is added up."""
    apart()
    by_D = splat(gates.dtype.type(0))
    for k in range(width):
        u_k, dy_k, z_k = load(inputs, k), load(cotangents, k), load(gates, k)
        s, ds = times_plus(D, u_k, load(outputs, k)), dy_k * silu(z_k)
        store(gates, k, s * dy_k * silu_slope(z_k))
        store(cotangents, k, ds)
        store(outputs, k, D * ds)
        by_D = times_plus(u_k, ds, by_D)
    store(sums, 0, load(sums, 0) + by_D)


@part
def _skip_and_slopes(by_u, by_dt, skips, slopes, width, sums):
    """du with D ds, ddt = σ(v) dΔ; ddt_bias is added up."""
    apart()
    by_bias = splat(skips.dtype.type(0))
    for k in range(width):
        by_v = load(by_dt, k) * load(slopes, k)
        store(by_u, k, load(by_u, k) + load(skips, k))
        store(by_dt, k, by_v)
        by_bias = by_bias + by_v
    store(sums, 1, load(sums, 1) + by_bias)


@part
def _sum_lanes(rows, t, target):
    """target[t + k, m] is the sum of row k·n + m, for the steps that there are; rows become 0."""
    apart()
    n, zero = target.shape[1], splat(rows.dtype.type(0))
    width = min(rows.shape[0] // max(n, 1), target.shape[0] - t)
    for k in range(width):
        for m in range(n):
            target[t + k, m] = total(load(rows, k * n + m))
            store(rows, k * n + m, zero)
