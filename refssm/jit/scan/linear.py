"""Numba mirrors of refssm.scan.linear: loops over time, the state across SIMD lanes.

One kernel for each direction. A scan from rest has a reset at its first step; a single step is a
scan of length 1.
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import gufunc, started
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.rows import over_rows
from refssm.scan import LINEAR_STEP
from refssm.scan.linear import LINEAR

CACHED = 2**17  # bytes of states that the way back finds in the cache of the core


@over_rows(2)
def _advance(a, b, before, flag):
    """x = a before + b, twice; b if the flag is set."""
    x = (a * before + b).instead(flag, b)
    return x, x


@over_rows(3, backwards=True)
def _turn_back(dx, a, before, carried, flag):
    """g = dx + a_{k+1}* g_{k+1}, da = x_{k-1}* g, and a* g for the step before; the last two are
    zero if the flag is set."""
    g = dx + carried
    return g, (before.conj() * g).unless(flag), (a.conj() * g).unless(flag)


@part
def _copied(x):
    """The vector as a matrix of one row."""
    row = np.empty((1, x.size), x.dtype)
    for n in range(x.size):
        row[0, n] = x[n]
    return row


@gufunc("(l,n),(l,n),(n),(l)->(l,n)", flag=3)
def scan(a, b, x0, resets, x):
    """x_k = b_k at a reset, else a_k x_{k-1} + b_k."""
    state = _copied(x0)
    for k in range(b.shape[0]):
        _advance(x, k, state, 0, a, k, b, k, state, 0, resets[k])


@gufunc("(l,n),(n),(l,n),(l,n),(n),(l)->(l,n),(l,n),(n)", flag=5)
def scan_back(dx, dlast, a, x, x0, resets, da, g, dx0):
    """g_k = dx_k + a_{k+1}* g_{k+1}, da_k = x_{k-1}* g_k, and dx0 = a_0* g_0."""
    carried, first = _copied(dlast), _copied(x0)
    for k in range(dx.shape[0] - 1, 0, -1):
        _turn_back(g, k, da, k, carried, 0, dx, k, a, k, x, k - 1, carried, 0, resets[k])
    if dx.shape[0]:
        _turn_back(g, 0, da, 0, carried, 0, dx, 0, a, 0, first, 0, carried, 0, resets[0])
    for n in range(dx0.size):
        dx0[n] = carried[0, n]


@gufunc("(l,n),(n),(l,n),(l,n),(n),(l)->(l,n),(l,n),(n)", flag=5)
def scan_vjp(dx, dlast, a, b, x0, resets, da, g, dx0):
    """The same from b. The states of a block of steps are computed again from its first one, so
    that they stay in the cache, and each array is read or written once on the way back."""
    l, n = b.shape
    steps = max(1, min(l, max(CACHED // (b.itemsize * max(1, n)), int(np.sqrt(l)))))
    blocks = (l + steps - 1) // steps
    state, carried = _copied(x0), _copied(dlast)
    starts, x = np.empty((blocks, n), b.dtype), np.empty((steps, n), b.dtype)
    for block in range(blocks):
        for i in range(n):
            starts[block, i] = state[0, i]
        if block < blocks - 1:
            for k in range(block * steps, (block + 1) * steps):
                _advance(x, 0, state, 0, a, k, b, k, state, 0, resets[k])
    for block in range(blocks - 1, -1, -1):
        first, end = block * steps, min(l, (block + 1) * steps)
        for i in range(n):
            state[0, i] = x[0, i] = starts[block, i]
        for k in range(first, end - 1):
            _advance(x, k - first + 1, state, 0, a, k, b, k, state, 0, resets[k])
        for k in range(end - 1, first - 1, -1):
            _turn_back(g, k, da, k, carried, 0, dx, k, a, k, x, k - first, carried, 0, resets[k])
    for i in range(n):
        dx0[i] = carried[0, i]


def at_rest(a) -> np.ndarray:
    """A state of zeros."""
    return np.zeros(a.shape[-1], np.finfo(a.dtype).dtype)


def _run(arguments, x0, resets):
    a, b = arguments
    return (scan(a, b, *started(at_rest(a), x0, resets, a.shape[-2])),)


def _back(cotangents, arguments, x0, resets):
    (dx,), (a, b) = cotangents, arguments
    x0, resets = started(at_rest(a), x0, resets, a.shape[-2])
    gradients = scan_vjp(dx, at_rest(dx), a, b, x0, resets)
    return unbroadcast_each(gradients, (a, b, x0))


(
    (linear_scan, linear_scan_vjp),
    (linear_scan_from, linear_scan_from_vjp),
    (linear_scan_packed, linear_scan_packed_vjp),
    (linear_scan_packed_from, linear_scan_packed_from_vjp),
    (linear_scan_reversed, linear_scan_reversed_vjp),
    (linear_step, _),
) = LINEAR.mirrors(_run, _back, mirror)


@mirror(LINEAR_STEP)
def linear_step_vjp(dx_next, a, b, x):
    """Two products, in NumPy."""
    db = dx_next.astype(np.result_type(dx_next, a, b, x))
    return unbroadcast_each((x.conj() * db, db, a.conj() * db), (a, b, x))
