"""Numba mirrors of refssm.norms over the last axis, with their gradients.

Sums within a row are over SIMD lanes; gradients of scale and shift are sums over the rows of each
matrix, in order, and then over matrices.
"""

from math import prod

import numpy as np

from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.rows import adjacent

KINDS = ("f4", "f8")
EPSILON = 1e-5  # under the root, as in refssm.norms
FAST = {"contract", "reassoc"}


@part(fastmath=FAST)
def _total(x):
    total = x.dtype.type(0)
    for i in range(x.size):
        total += x[i]
    return total


@part(fastmath=FAST)
def _squares(x, mean):
    """Σ (x − mean)²."""
    total = x.dtype.type(0)
    for i in range(x.size):
        total += (x[i] - mean) * (x[i] - mean)
    return total


@part
def _moments(x):
    """The mean of a row, and 1/√(variance + ε)."""
    count = x.dtype.type(x.size)
    mean = _total(x) / count
    # an integer divided by a number of single precision would be one of double precision
    return mean, x.dtype.type(1) / np.sqrt(_squares(x, mean) / count + x.dtype.type(EPSILON))


@part(fastmath={"contract"})
def _normal_row(x, mean, rate, scale, shift, y):
    for i in range(x.size):
        y[i] = scale[i] * ((x[i] - mean) * rate) + shift[i]


@gufunc("(n),(n),(n)->(n)", kinds=KINDS)
def _layer_norm(x, scale, shift, y):
    mean, rate = _moments(adjacent(x))
    _normal_row(adjacent(x), mean, rate, adjacent(scale), adjacent(shift), adjacent(y))


def layer_norm(x, scale, shift):
    """scale (x − mean)/√(variance + ε) + shift."""
    return _layer_norm(*_adjacent_rows(x, scale, shift))


def _adjacent_rows(*arrays):
    """The arrays in one type, those without adjacent entries copied: a kernel with a second branch
    for these would take twice the time."""
    kind = np.result_type(*arrays)
    return [np.ascontiguousarray(a, kind) for a in arrays]


@part(fastmath=FAST)
def _products(dy, scale, x, mean, rate):
    """Σ g and Σ g (x − mean) rate, with g = dy scale."""
    first, second = x.dtype.type(0), x.dtype.type(0)
    for i in range(x.size):
        g = dy[i] * scale[i]
        first += g
        second += g * ((x[i] - mean) * rate)
    return first, second


@part(fastmath={"contract"})
def _back_row(dy, x, scale, mean, rate, along, across, dx):
    """dx = rate (g − mean of g − y · mean of g y)."""
    for i in range(x.size):
        y = (x[i] - mean) * rate
        dx[i] = rate * (dy[i] * scale[i] - along - y * across)


@part(fastmath={"contract"})
def _add_row(dy, x, mean, rate, dscale, dshift):
    """Adds dy y and dy to the sums of all rows."""
    for i in range(x.size):
        dscale[i] += dy[i] * ((x[i] - mean) * rate)
        dshift[i] += dy[i]


@gufunc("(m,n),(m,n),(n)->(m,n),(n),(n)", kinds=KINDS)
def _layer_norm_back(dy, x, scale, dx, dscale, dshift):
    count = x.dtype.type(x.shape[1])
    of_scale, of_shift = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    weights = adjacent(scale)
    for k in range(x.shape[0]):
        u, g = adjacent(x[k]), adjacent(dy[k])
        mean, rate = _moments(u)
        first, second = _products(g, weights, u, mean, rate)
        _back_row(g, u, weights, mean, rate, first / count, second / count, adjacent(dx[k]))
        _add_row(g, u, mean, rate, adjacent(of_scale), adjacent(of_shift))
    for i in range(x.shape[1]):
        dscale[i], dshift[i] = of_scale[i], of_shift[i]


def layer_norm_vjp(dy, x, scale):
    """Gradients of x, scale and shift."""
    dy, x, scale = _adjacent_rows(dy, x, scale)
    shape = (prod(x.shape[:-2]), *x.shape[-2:]) if x.ndim > 1 else (1, 1, len(x))
    dx, dscale, dshift = _layer_norm_back(dy.reshape(shape), x.reshape(shape), scale)
    return dx.reshape(x.shape), dscale.sum(0), dshift.sum(0)
