"""The compiled adjoint of real selective scans, with channels in lanes as in `forward`.

The states before blocks of √l steps are stored, and the states and decays of one block computed
again: O(n √l) numbers a channel [chen2016training]. dB and dC are collected in each lane over all
tiles of a piece; lanes are summed once a block.
"""

# pyright: reportCallIssue=false
# (pyright sees the compiler's argument of intrinsics)

from math import ceil, sqrt

from refssm.jit._compiling.parts import part
from refssm.jit._vectors.exponential import sigmoid, silu, silu_slope
from refssm.jit._vectors.lanes import apart, splat, times_plus, total
from refssm.jit._vectors.scratch import (
    SIZE,
    after,
    assign,
    load,
    put,
    release,
    scratch,
    store,
    width_of,
    zero_of,
)
from refssm.jit.selective_scan.channels import over_channels
from refssm.jit.selective_scan.tiles import (
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
    n, l, lanes = A.shape[1], u.shape[1], SIZE // u.itemsize
    tiles, q = (u.shape[0] + lanes - 1) // lanes, ceil(sqrt(l) / lanes) * lanes
    q = 1 if l == 0 else (l if l < q else q)
    blocks = (l + q - 1) // q
    work = scratch((blocks + 2) * tiles * n + 2 * tiles + (4 * q + 3) * n + 7 * q + 2, du)
    starts, ends = work, after(work, blocks * tiles * n)
    by_A, by_B = after(ends, tiles * n), after(ends, 2 * tiles * n)
    by_C, sums = after(by_B, q * n), after(by_B, 2 * q * n)
    x = after(sums, 2 * tiles)
    a = after(x, (q + 1) * n)
    rows = after(a, q * n)
    _run_to_blocks(u, dt, A, B, C, dt_bias, x0, resets, q, starts, rows)
    for i in range(tiles):
        gathered(dx, i * lanes, 0, n, after(ends, i * n))
    for block in range(blocks - 1, -1, -1):
        for i in range(tiles):
            for m in range(n):
                store(x, m, load(starts, (i * blocks + block) * n + m))
            _tile_back(
                dy, u, dt, A, B, C, D, z, dt_bias, resets, i * lanes, block * q, q, rows, x, a,
                after(ends, i * n), after(by_A, i * n), by_B, by_C, after(sums, 2 * i), du, ddt, dz,
            )  # fmt: skip
        _sum_lanes(by_B, q, block * q, dB)
        _sum_lanes(by_C, q, block * q, dC)
    for i in range(tiles):
        scattered(after(by_A, i * n), i * lanes, 0, n, dA)
        scattered(after(ends, i * n), i * lanes, 0, n, dx0)
        if z is not None:
            scattered(after(sums, 2 * i), i * lanes, 0, 1, dD)
            scattered(after(sums, 2 * i + 1), i * lanes, 0, 1, ddt_bias)
    release(work)


@part
def _run_to_blocks(u, dt, A, B, C, dt_bias, x0, resets, q, starts, rows):
    """The states before each block of q steps: row (tile · blocks + block) · n + m of `starts`."""
    apart()
    n, l, lanes = A.shape[1], u.shape[1], width_of(rows)
    inputs, steps, outputs = rows, after(rows, q), after(rows, 2 * q)
    careful, rates, state = after(rows, 3 * q), after(rows, 4 * q), after(rows, 4 * q + n)
    flags = after(rows, 4 * q + 2 * n)
    for d in range(0, u.shape[0], lanes):
        bound = rates_of(A, d, rates)
        gathered(x0, d, 0, n, state)
        for t in range(0, l, q):
            for m in range(n):
                store(starts, m, load(state, m))
            starts = after(starts, n)
            if t + q < l:
                gathered(u, d, t, q, inputs)
                steps_of(dt, dt_bias, d, t, q, steps, flags)
                careful_steps(steps, q, bound, resets, d, t, careful)
                run(inputs, steps, rates, B, C, resets, d, t, q, careful, flags, state, outputs)


@part
def _tile_back(
    dy, u, dt, A, B, C, D, z, dt_bias, resets, d, t, q, rows, x, a,
    g, by_A, by_B, by_C, sums, du, ddt, dz,
):  # fmt: skip
    """One block of the tile from channel d; `g` becomes the cotangent of the state before it."""
    apart()
    n, width = A.shape[1], u.shape[1] - t
    width = q if q < width else width
    inputs, steps, cotangents = rows, after(rows, q), after(rows, 2 * q)
    outputs, gates, slopes = after(rows, 3 * q), after(rows, 4 * q), after(rows, 5 * q)
    careful, rates = after(rows, 6 * q), after(rows, 7 * q)
    own_A, flags = after(rates, n), after(rates, 2 * n)
    bound = rates_of(A, d, rates)
    gathered(A, d, 0, n, own_A)
    gathered(u, d, t, width, inputs)
    gathered(dy, d, t, width, cotangents)
    steps_of(dt, dt_bias, d, t, width, steps, flags)
    careful_steps(steps, width, bound, resets, d, t, careful)
    replay(inputs, steps, rates, B, C, resets, d, t, width, careful, flags, x, a, outputs)
    if z is not None:
        gathered(z, d, t, width, gates)
        gathered(D, d, 0, 1, flags)
        _gate_back(cotangents, inputs, outputs, gates, load(flags, 0), width, sums)
        scattered(gates, d, t, width, dz)
        steps_of(dt, None, d, t, width, slopes, flags)
        gathered(dt_bias, d, 0, 1, flags)
        for k in range(width):
            store(slopes, k, sigmoid(load(slopes, k) + load(flags, 0)))
    _mark_used(u.shape[0] - d, width, careful, after(flags, 1))
    pull_back(
        cotangents, inputs, steps, own_A, B, C, resets, d, t, width, careful, flags, x, a, g,
        rates, by_B, by_C,
    )  # fmt: skip
    for m in range(n):
        store(by_A, m, load(by_A, m) + load(rates, m))
    if z is not None:
        _skip_and_slopes(cotangents, inputs, outputs, slopes, width, sums)
    scattered(cotangents, d, t, width, du)
    scattered(inputs, d, t, width, ddt)


@part
def _gate_back(cotangents, inputs, outputs, gates, D, width, sums):
    """ds = dy silu(z) in place of dy, D ds in place of y, dz in place of z; dD is added up."""
    apart()
    by_D = splat(zero_of(gates))
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
    by_bias = splat(zero_of(skips))
    for k in range(width):
        by_v = load(by_dt, k) * load(slopes, k)
        store(by_u, k, load(by_u, k) + load(skips, k))
        store(by_dt, k, by_v)
        by_bias = by_bias + by_v
    store(sums, 1, load(sums, 1) + by_bias)


@part
def _mark_used(channels, width, careful, used):
    """Lanes that have a channel are 1; where one has none, every step is careful."""
    apart()
    for j in range(width_of(used)):
        put(used, j, 1 if j < channels else 0)
    if channels < width_of(used):
        for k in range(width):
            put(careful, k, 1)


@part
def _sum_lanes(rows, q, t, target):
    """target[t + k, m] is the sum of row k·n + m, for the steps that there are; rows become 0."""
    apart()
    n, zero = target.shape[1], splat(zero_of(rows))
    width = q if q < target.shape[0] - t else target.shape[0] - t
    for k in range(width):
        for m in range(n):
            assign(target, t + k, m, total(load(rows, k * n + m)))
            store(rows, k * n + m, zero)
