"""Numba mirrors of refssm.norms over the last axis, with their gradients.

Sums within a row are over SIMD lanes; gradients of scale and shift are sums over the rows of each
matrix, in order, and then over matrices. Groups of channels are rows of their own.
"""

from math import prod

import numpy as np

from refssm._numerics.broadcasting import unbroadcast
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors import exponential
from refssm.jit._vectors.rows import adjacent
from refssm.norms import GATED_RMS_NORM, L2_NORM, RMS_NORM_GATED

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


@part
def _rate(x, count, eps):
    """1/√(Σ x²/count + ε)."""
    one, zero = x.dtype.type(1), x.dtype.type(0)
    return one / np.sqrt(_squares(x, zero) / x.dtype.type(count) + eps)


@part(fastmath=FAST)
def _product(x, y):
    total = x.dtype.type(0)
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@part
def _gated_row(x, z, s):
    """s = x silu(z)."""
    for i in range(x.size):
        s[i] = x[i] * exponential.silu(z[i])


@part
def _scaled_row(x, rate, w, y):
    for i in range(x.size):
        y[i] = w[i] * (x[i] * rate)


@part
def _projected_row(g, x, rate, count, dx):
    """dx = r (g − y Σ g y/count), y = r x."""
    across = rate * _product(g, x) / x.dtype.type(count)
    for i in range(x.size):
        dx[i] = rate * (g[i] - x[i] * rate * across)


@part
def _silu_back_row(ds, x, z, dx, dz):
    """The gradients of s = x silu(z); `ds` may be the memory of `dx`."""
    for i in range(x.size):
        d = ds[i]
        dx[i] = d * exponential.silu(z[i])
        dz[i] = d * x[i] * exponential.silu_slope(z[i])


@gufunc("(n),(n),(n),()->(n)", kinds=KINDS)
def _norm_gated(x, z, w, eps, y):
    rows = np.empty(x.size, x.dtype)
    _scaled_row(adjacent(x), _rate(adjacent(x), x.size, eps[0]), adjacent(w), adjacent(rows))
    _gated_row(adjacent(rows), adjacent(z), adjacent(y))


@gufunc("(n),(n),(n),(n),()->(n),(n),(n)", kinds=KINDS)
def _norm_gated_back(dy, x, z, w, eps, dx, dz, dw):
    """y = r x w silu(z); dw holds dy silu(z) before it is multiplied by r x."""
    u, g = adjacent(x), np.empty(x.size, x.dtype)
    rate = _rate(u, x.size, eps[0])
    _scaled_row(u, rate, adjacent(w), adjacent(g))
    _silu_back_row(adjacent(dy), adjacent(g), adjacent(z), adjacent(dw), adjacent(dz))
    for i in range(x.size):
        g[i] = dw[i] * w[i]
    for i in range(x.size):
        dw[i] = dw[i] * (x[i] * rate)
    _projected_row(adjacent(g), u, rate, x.size, adjacent(dx))


@gufunc("(n),(n),(n),()->(n)", kinds=KINDS)
def _gated_norm(x, z, w, eps, y):
    s = np.empty(x.size, x.dtype)
    _gated_row(adjacent(x), adjacent(z), adjacent(s))
    _scaled_row(adjacent(s), _rate(adjacent(s), x.size, eps[0]), adjacent(w), adjacent(y))


@gufunc("(n),(n),(n),(n),()->(n),(n),(n)", kinds=KINDS)
def _gated_norm_back(dy, x, z, w, eps, dx, dz, dw):
    s, g = np.empty(x.size, x.dtype), np.empty(x.size, x.dtype)
    _gated_row(adjacent(x), adjacent(z), adjacent(s))
    rate = _rate(adjacent(s), x.size, eps[0])
    for i in range(x.size):
        g[i] = dy[i] * w[i]
        dw[i] = dy[i] * (s[i] * rate)
    _projected_row(adjacent(g), adjacent(s), rate, x.size, adjacent(dx))
    _silu_back_row(adjacent(dx), adjacent(x), adjacent(z), adjacent(dx), adjacent(dz))


@gufunc("(n),()->(n)", kinds=KINDS)
def _of_length_one(x, eps, y):
    rate = _rate(adjacent(x), 1, eps[0])
    for i in range(x.size):
        y[i] = x[i] * rate


@gufunc("(n),(n),()->(n)", kinds=KINDS)
def _of_length_one_back(dy, x, eps, dx):
    _projected_row(adjacent(dy), adjacent(x), _rate(adjacent(x), 1, eps[0]), 1, adjacent(dx))


def _rows(eps, group, *arrays):
    """Arrays with all leading axes and adjacent entries in rows of `group` channels; ε."""
    kind, n = np.result_type(*arrays), arrays[0].shape[-1]
    size = group or n or 1
    full = (a.astype(kind, copy=False) for a in arrays)
    rows = (np.ascontiguousarray(a.reshape(*a.shape[:-1], n // size, size)) for a in full)
    return *rows, np.asarray(eps, kind)


def _joined(*rows):
    """The rows of groups side by side again."""
    return [r.reshape(*r.shape[:-2], r.shape[-2] * r.shape[-1]) for r in rows]


def _gradients(gradients, primals):
    """Each in the shape of its argument; sums over leading axes are in double precision."""
    each = zip(gradients, primals, strict=True)
    return tuple(
        d if d.shape == x.shape else unbroadcast(d.astype(np.float64), x).astype(d.dtype)
        for d, x in each
    )


@mirror(RMS_NORM_GATED)
def rms_norm_gated(x, z, w, *, eps=EPSILON):
    return _joined(_norm_gated(*_rows(eps, None, x, z, w)))[0]


@mirror(RMS_NORM_GATED)
def rms_norm_gated_vjp(dy, x, z, w, *, eps=EPSILON):
    return _gradients(_joined(*_norm_gated_back(*_rows(eps, None, dy, x, z, w))), (x, z, w))


@mirror(GATED_RMS_NORM)
def gated_rms_norm(x, z, w, *, eps=EPSILON, group=None):
    return _joined(_gated_norm(*_rows(eps, group, x, z, w)))[0]


@mirror(GATED_RMS_NORM)
def gated_rms_norm_vjp(dy, x, z, w, *, eps=EPSILON, group=None):
    return _gradients(_joined(*_gated_norm_back(*_rows(eps, group, dy, x, z, w))), (x, z, w))


@mirror(L2_NORM)
def l2_norm(x, *, eps=1e-6):
    return _joined(_of_length_one(*_rows(eps, None, x)))[0]


@mirror(L2_NORM)
def l2_norm_vjp(dy, x, *, eps=1e-6):
    return _gradients(_joined(_of_length_one_back(*_rows(eps, None, dy, x))), (x,))
