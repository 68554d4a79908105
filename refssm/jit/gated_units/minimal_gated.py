"""Numba mirrors of refssm.gated_units.minimal_gated: gates and scan in one pass.

One kernel for each direction. Where a sequence begins, at a reset, the state before is not read. A
single step is a scan of length 1.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.gated_units.minimal_gated import MINIMAL_GATED
from refssm.jit._compiling.gufunc import gufunc, started
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors import exponential
from refssm.jit._vectors.rows import adjacent
from refssm.jit.gated_units.rows import copied, steps_of_block, with_rows

REAL = ("f4", "f8")


@part
def _advance(k, h, before, x):
    """x = (1 − z) before + z g(h)."""
    for n in range(x.size):
        z, rest, s = (
            exponential.sigmoid(k[n]),
            exponential.sigmoid(-k[n]),
            exponential.sigmoid(h[n]),
        )
        g = h[n] + 0.5 if h[n] >= 0 else s
        x[n] = rest * before[n] + z * g


@part
def _begin(k, h, x):
    """x = z g(h)."""
    for n in range(x.size):
        z, s = exponential.sigmoid(k[n]), exponential.sigmoid(h[n])
        x[n] = z * (h[n] + 0.5 if h[n] >= 0 else s)


@gufunc("(l,n),(l,n),(n),(l)->(l,n)", flag=3, kinds=REAL)
def scan(k, h, x0, resets, x):
    """All states."""
    before = np.empty(x0.size, x.dtype)
    copied(x0, before)
    for t in range(k.shape[0]):
        if resets[t]:
            _begin(adjacent(k[t]), adjacent(h[t]), adjacent(x[t]))
        else:
            _advance(adjacent(k[t]), adjacent(h[t]), before, adjacent(x[t]))
        copied(x[t], before)


# Loops that write one row each: of several, LLVM would have to know that none lies in another.


@part
def _gates(dx, k, h, carried, z, rest, g, e):
    """z, 1 − z, g(h) and the cotangent of the state after a step."""
    for n in range(z.size):
        z[n] = exponential.sigmoid(k[n])
    for n in range(z.size):
        rest[n] = exponential.sigmoid(-k[n])
    for n in range(z.size):
        s = exponential.sigmoid(h[n])
        g[n] = h[n] + 0.5 if h[n] >= 0 else s
    for n in range(z.size):
        e[n] = dx[n] + carried[n]


@part
def _turn_back(dx, k, h, before, carries, carried, work, dk, dh):
    """Gradients of one step; `carried` has the cotangent of the state after, then before it. At a
    reset the state before has no part in it."""
    z, rest, g, e = adjacent(work[0]), adjacent(work[1]), adjacent(work[2]), adjacent(work[3])
    _gates(dx, k, h, carried, z, rest, g, e)
    for n in range(dk.size):
        dh[n] = exponential.sigmoid(h[n]) * exponential.sigmoid(-h[n])
    for n in range(dk.size):
        dh[n] = z[n] * e[n] * (1 if h[n] >= 0 else dh[n])
    if carries:
        for n in range(dk.size):
            dk[n] = z[n] * rest[n] * (g[n] * e[n] - before[n] * e[n])
        for n in range(dk.size):
            carried[n] = rest[n] * e[n]
    else:
        for n in range(dk.size):
            dk[n] = z[n] * rest[n] * (g[n] * e[n])
        for n in range(dk.size):
            carried[n] = 0


@gufunc("(l,n),(l,n),(l,n),(n),(l)->(l,n),(l,n),(n)", flag=4, kinds=REAL)
def scan_back(dx, k, h, x0, resets, dk, dh, dx0):
    """Gradients for k, h and x0; states of one block of steps at a time."""
    (l, n), kind = k.shape, k.dtype
    steps = steps_of_block(l, n, k.itemsize)
    blocks = (l + steps - 1) // steps
    # x[j] is the state before step j of a block
    starts, x = np.empty((max(blocks, 1), n), kind), np.empty((steps + 1, n), kind)
    carried, work = np.zeros(n, kind), np.empty((4, n), kind)
    copied(x0, starts[0])
    for block in range(blocks - 1):
        copied(starts[block], x[0])
        for j in range(steps):
            t, after = block * steps + j, adjacent(x[(j + 1) % 2])
            if resets[t]:
                _begin(adjacent(k[t]), adjacent(h[t]), after)
            else:
                _advance(adjacent(k[t]), adjacent(h[t]), adjacent(x[j % 2]), after)
        copied(x[steps % 2], starts[block + 1])
    for block in range(blocks - 1, -1, -1):
        first, end = block * steps, min(l, (block + 1) * steps)
        copied(starts[block], x[0])
        for t in range(first, end - 1):
            before, after = adjacent(x[t - first]), adjacent(x[t - first + 1])
            if resets[t]:
                _begin(adjacent(k[t]), adjacent(h[t]), after)
            else:
                _advance(adjacent(k[t]), adjacent(h[t]), before, after)
        for t in range(end - 1, first - 1, -1):
            of_step = adjacent(dx[t]), adjacent(k[t]), adjacent(h[t])
            into = carried, work, adjacent(dk[t]), adjacent(dh[t])
            _turn_back(*of_step, adjacent(x[t - first]), not resets[t], *into)
    copied(carried, dx0)


def at_rest(k) -> np.ndarray:
    """A state of zeros."""
    return np.zeros(k.shape[-1], k.dtype)


def _run(arguments, x0, resets):
    k, h = arguments
    return (scan(*with_rows(k, h), *started(at_rest(k), x0, resets, k.shape[-2])),)


def _back(cotangents, arguments, x0, resets):
    (dx,), (k, h) = cotangents, arguments
    x0, resets = started(at_rest(k), x0, resets, k.shape[-2])
    gradients = scan_back(*with_rows(dx, k, h), x0, resets)
    return unbroadcast_each(gradients, (k, h, x0))


(
    (min_gru, min_gru_vjp),
    (min_gru_from, min_gru_from_vjp),
    (min_gru_packed, min_gru_packed_vjp),
    (min_gru_packed_from, min_gru_packed_from_vjp),
    (min_gru_step, min_gru_step_vjp),
) = MINIMAL_GATED.mirrors(_run, _back, mirror)
