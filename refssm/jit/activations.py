"""Numba mirrors of refssm.activations: whole rows at once, across SIMD lanes, on all cores.

Real arrays of single and double precision; the last axis is the row.
"""

import numpy as np

from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.parts import part
from refssm.jit._vectors import exponential
from refssm.jit._vectors.rows import adjacent

KINDS = ("f4", "f8")


@part
def beside(x):
    """True if the entries are adjacent."""
    return x.size < 2 or x.strides[0] == x.itemsize


@part
def _gelu_row(x, y):
    for i in range(x.size):
        y[i] = exponential.gelu(x[i])


@gufunc("(n)->(n)", kinds=KINDS)
def gelu(x, y):
    """x Φ(x)."""
    if beside(x) and beside(y):
        _gelu_row(adjacent(x), adjacent(y))
    else:
        _gelu_row(x, y)


@part
def _gelu_back_row(dy, x, dx):
    for i in range(x.size):
        dx[i] = dy[i] * exponential.gelu_slope(x[i])


@gufunc("(n),(n)->(n)", kinds=KINDS)
def gelu_vjp(dy, x, dx):
    """dy (Φ(x) + x φ(x))."""
    if beside(dy) and beside(x) and beside(dx):
        _gelu_back_row(adjacent(dy), adjacent(x), adjacent(dx))
    else:
        _gelu_back_row(dy, x, dx)


@part
def _silu_row(x, y):
    for i in range(x.size):
        y[i] = exponential.silu(x[i])


@gufunc("(n)->(n)", kinds=KINDS)
def silu(x, y):
    """x σ(x)."""
    if beside(x) and beside(y):
        _silu_row(adjacent(x), adjacent(y))
    else:
        _silu_row(x, y)


@part
def _silu_back_row(dy, x, dx):
    for i in range(x.size):
        dx[i] = dy[i] * exponential.silu_slope(x[i])


@gufunc("(n),(n)->(n)", kinds=KINDS)
def silu_vjp(dy, x, dx):
    """dy σ(x) (1 + x σ(−x))."""
    if beside(dy) and beside(x) and beside(dx):
        _silu_back_row(adjacent(dy), adjacent(x), adjacent(dx))
    else:
        _silu_back_row(dy, x, dx)


@part
def _gate_row(a, b, y):
    for i in range(a.size):
        y[i] = a[i] * exponential.sigmoid(b[i])


@gufunc("(n),(n)->(n)", kinds=KINDS)
def gate(a, b, y):
    """a σ(b)."""
    if beside(a) and beside(b) and beside(y):
        _gate_row(adjacent(a), adjacent(b), adjacent(y))
    else:
        _gate_row(a, b, y)


@part
def _gate_back_row(dy, a, b, da, db):
    for i in range(a.size):
        open_ = exponential.sigmoid(b[i])
        da[i] = dy[i] * open_
        db[i] = dy[i] * a[i] * open_ * exponential.sigmoid(-b[i])


@gufunc("(n),(n),(n)->(n),(n)", kinds=KINDS)
def gate_vjp(dy, a, b, da, db):
    """dy σ(b) and dy a σ(b) σ(−b)."""
    if beside(dy) and beside(a) and beside(b) and beside(da) and beside(db):
        _gate_back_row(adjacent(dy), adjacent(a), adjacent(b), adjacent(da), adjacent(db))
    else:
        _gate_back_row(dy, a, b, da, db)


def glu(x):
    """a σ(b), where a and b are the halves of the last axis."""
    return gate(*np.split(x, 2, axis=-1))


@gufunc("(n),(t,n)->(t,n)", kinds=KINDS)
def _glu_back(dy, x, dx):
    if beside(dy) and beside(x[0]) and beside(dx[0]):
        a, b, da, db = adjacent(x[0]), adjacent(x[1]), adjacent(dx[0]), adjacent(dx[1])
        _gate_back_row(adjacent(dy), a, b, da, db)
    else:
        _gate_back_row(dy, x[0], x[1], dx[0], dx[1])


def glu_vjp(dy, x):
    """The gradients of both halves, joined."""
    return _glu_back(dy, x.reshape(*x.shape[:-1], 2, -1)).reshape(x.shape)
