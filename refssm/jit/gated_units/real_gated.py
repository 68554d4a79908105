"""Numba mirrors of refssm.gated_units.real_gated: gates and scan in one pass.

One kernel for each direction. `rate` is −8 softplus(a_param), worked out once. Where a sequence
begins, at a reset, the state before is not read; with a `share` of 1 its input has no root, as in
`rg_lru_unscaled_start`, with 0 it has. A single step is a scan of length 1.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.activations import sigmoid, softplus
from refssm.gated_units.real_gated import REAL_GATED, UNSCALED_START
from refssm.jit._compiling.gufunc import gufunc, started
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors import exponential
from refssm.jit._vectors.rows import adjacent
from refssm.jit.gated_units.rows import copied, steps_of_block, with_rows

REAL = ("f4", "f8")


@part
def _advance(u, r, i, rate, before, x):
    """x = a before + √(1 − a²) i u."""
    for n in range(x.size):
        log_a = rate[n] * r[n]
        root = np.sqrt(exponential.complement(2 * log_a))
        x[n] = exponential.exp(log_a) * before[n] + root * (i[n] * u[n])


@part
def _begin(u, r, i, rate, x):
    """x = √(1 − a²) i u."""
    for n in range(x.size):
        x[n] = np.sqrt(exponential.complement(2 * (rate[n] * r[n]))) * (i[n] * u[n])


@part
def _begin_unscaled(u, i, x):
    """x = i u: no gate of the decay enters, so nor does its NaN."""
    for n in range(x.size):
        x[n] = i[n] * u[n]


@part
def _step(u, r, i, rate, before, begins, share, x):
    """One step from the row `before`; at a reset from nothing."""
    if not begins:
        _advance(u, r, i, rate, before, x)
    elif share != 0:
        _begin_unscaled(u, i, x)
    else:
        _begin(u, r, i, rate, x)


@gufunc("(l,n),(l,n),(l,n),(n),(n),(m),(l)->(l,n)", flag=6, kinds=REAL)
def scan(u, r, i, rate, x0, share, resets, x):
    """All states; `share` is one number."""
    before = np.empty(x0.size, x.dtype)
    copied(x0, before)
    for k in range(u.shape[0]):
        of_step = adjacent(u[k]), adjacent(r[k]), adjacent(i[k])
        _step(*of_step, adjacent(rate), before, resets[k], share[0], adjacent(x[k]))
        copied(x[k], before)


# Loops that write one row each: of several, LLVM would have to know that none lies in another.


@part
def _gates(dx, r, rate, carried, a, root, g):
    """a, √(1 − a²) and the cotangent of the state after a step."""
    for n in range(a.size):
        a[n] = exponential.exp(rate[n] * r[n])
    for n in range(a.size):
        root[n] = np.sqrt(exponential.complement(2 * (rate[n] * r[n])))
    for n in range(a.size):
        g[n] = dx[n] + carried[n]


@part
def _through_decay(u, r, i, rate, a, root, g, carries, before, dlog_a, carried):
    """The cotangents of log a and of the state before; none of that at a reset."""
    for n in range(a.size):
        dlog_a[n] = a[n] * a[n] / root[n] * (i[n] * u[n]) * g[n]
    if carries:
        for n in range(a.size):
            dlog_a[n] = a[n] * (before[n] * g[n]) - dlog_a[n]
        for n in range(a.size):
            carried[n] = a[n] * g[n]
    else:
        for n in range(a.size):
            dlog_a[n] = -dlog_a[n]
        for n in range(a.size):
            carried[n] = 0


@part
def _turn_back(dx, u, r, i, rate, before, carries, carried, work, du, dr, di, drate):
    """Gradients of one step; `carried` has the cotangent of the state after, then before it."""
    a, root, g, dlog_a = adjacent(work[0]), adjacent(work[1]), adjacent(work[2]), adjacent(work[3])
    _gates(dx, r, rate, carried, a, root, g)
    for n in range(du.size):
        du[n] = root[n] * i[n] * g[n]
    for n in range(du.size):
        di[n] = root[n] * u[n] * g[n]
    _through_decay(u, r, i, rate, a, root, g, carries, before, dlog_a, carried)
    for n in range(du.size):
        dr[n] = rate[n] * dlog_a[n]
    for n in range(du.size):
        drate[n] += r[n] * dlog_a[n]


@part
def _turn_back_unscaled(dx, u, i, carried, du, dr, di):
    """The same where a sequence begins with i u."""
    for n in range(du.size):
        g = dx[n] + carried[n]
        du[n], di[n], dr[n], carried[n] = i[n] * g, u[n] * g, 0, 0


@part
def _back(dx, u, r, i, rate, before, begins, share, carried, work, du, dr, di, drate):
    """One step backwards."""
    if begins and share != 0:
        _turn_back_unscaled(dx, u, i, carried, du, dr, di)
    else:
        _turn_back(dx, u, r, i, rate, before, not begins, carried, work, du, dr, di, drate)


@gufunc("(l,n),(l,n),(l,n),(l,n),(n),(n),(m),(l)->(l,n),(l,n),(l,n),(n),(n)", flag=7, kinds=REAL)
def scan_back(dx, u, r, i, rate, x0, share, resets, du, dr, di, drate, dx0):
    """Gradients for u, r, i, the rate and x0; states of one block of steps at a time."""
    (l, n), kind = u.shape, u.dtype
    steps = steps_of_block(l, n, u.itemsize)
    blocks = (l + steps - 1) // steps
    # x[j] is the state before step j of a block
    starts, x = np.empty((max(blocks, 1), n), kind), np.empty((steps + 1, n), kind)
    carried, sums, work = np.zeros(n, kind), np.zeros(n, kind), np.empty((4, n), kind)
    copied(x0, starts[0])
    copied(sums, drate)
    for block in range(blocks - 1):
        copied(starts[block], x[0])
        for j in range(steps):
            k = block * steps + j
            of_step = adjacent(u[k]), adjacent(r[k]), adjacent(i[k])
            after = adjacent(x[(j + 1) % 2])
            _step(*of_step, adjacent(rate), adjacent(x[j % 2]), resets[k], share[0], after)
        copied(x[steps % 2], starts[block + 1])
    for block in range(blocks - 1, -1, -1):
        first, end = block * steps, min(l, (block + 1) * steps)
        copied(starts[block], x[0])
        for k in range(first, end - 1):
            of_step, j = (adjacent(u[k]), adjacent(r[k]), adjacent(i[k])), k - first
            before, after = adjacent(x[j]), adjacent(x[j + 1])
            _step(*of_step, adjacent(rate), before, resets[k], share[0], after)
        for k in range(end - 1, first - 1, -1):
            of_step = adjacent(dx[k]), adjacent(u[k]), adjacent(r[k]), adjacent(i[k])
            before = adjacent(x[k - first])
            given = *of_step, adjacent(rate), before, resets[k], share[0], carried, work
            _back(*given, adjacent(du[k]), adjacent(dr[k]), adjacent(di[k]), sums)
        for c in range(n):
            drate[c] += sums[c]
            sums[c] = 0
    copied(carried, dx0)


def at_rest(rate) -> np.ndarray:
    """A state of zeros."""
    return np.zeros(rate.shape[-1], rate.dtype)


def kernels_of(share: float):
    """`run` and `back` where sequences begin with a root (0) or without (1)."""

    def run(arguments, x0, resets):
        u, r, i, a_param = arguments
        rate = -8 * softplus(a_param)
        x0, resets = started(at_rest(rate), x0, resets, u.shape[-2])
        part_of = np.full(1, share, rate.dtype)
        return (scan(*with_rows(u, r, i, rate), x0, part_of, resets),)

    def back(cotangents, arguments, x0, resets):
        (dx,), (u, r, i, a_param) = cotangents, arguments
        rate = -8 * softplus(a_param)
        x0, resets = started(at_rest(rate), x0, resets, u.shape[-2])
        part_of = np.full(1, share, rate.dtype)
        given = with_rows(dx, u, r, i, rate)
        du, dr, di, drate, dx0 = scan_back(*given, x0, part_of, resets)
        da_param = drate * (-8 * sigmoid(a_param))
        return unbroadcast_each((du, dr, di, da_param, dx0), (*arguments, x0))

    return run, back


(
    (rg_lru, rg_lru_vjp),
    (rg_lru_from, rg_lru_from_vjp),
    (rg_lru_packed, rg_lru_packed_vjp),
    (rg_lru_packed_from, rg_lru_packed_from_vjp),
    (rg_lru_step, rg_lru_step_vjp),
) = REAL_GATED.mirrors(*kernels_of(0.0), mirror)
(
    (rg_lru_unscaled_start, rg_lru_unscaled_start_vjp),
    (rg_lru_unscaled_start_packed, rg_lru_unscaled_start_packed_vjp),
) = UNSCALED_START.mirrors(*kernels_of(1.0), mirror)
