"""Short convolutions with a bias and SiLU: their kernels, and a pass after them.

The pass adds the bias and applies SiLU in place, one row after the other; the gradient goes back
through it to the convolution's own.
"""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast, with_batch
from refssm.convolution import (
    CAUSAL_CONV1D,
    CAUSAL_CONV1D_PACKED,
    CAUSAL_CONV1D_STATEFUL,
    CAUSAL_CONV1D_STEP,
)
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors import exponential
from refssm.jit._vectors.rows import adjacent
from refssm.jit.convolution.short import (
    convolved,
    convolved_back,
    newest,
    packed,
    packed_back,
    pulled_back,
    rest,
)

KINDS = ("f4", "f8")
BLOCK = 128  # slopes that are added before the others: a loop over l terms loses l roundings


@part
def _activated_row(a, bias, y):
    for i in range(a.size):
        y[i] = exponential.silu(a[i] + bias)


@gufunc("(l),()->(l)", kinds=KINDS)
def _activated(a, bias, y):
    """silu(a_i + bias)."""
    _activated_row(adjacent(a), bias[0], adjacent(y))


@part
def _slopes_row(dy, a, bias, g):
    for i in range(a.size):
        g[i] = dy[i] * exponential.silu_slope(a[i] + bias)


@gufunc("(l),(l),()->(l),()", kinds=KINDS)
def _activated_back(dy, a, bias, g, total):
    """g_i = dy_i silu'(a_i + bias), and Σ_i g_i."""
    _slopes_row(adjacent(dy), adjacent(a), bias[0], adjacent(g))
    total[0] = 0
    for start in range(0, g.size, BLOCK):
        some = g.dtype.type(0)
        for i in range(start, min(start + BLOCK, g.size)):
            some += g[i]
        total[0] += some


def _back(dy, a, bias):
    """g, and the gradient of the bias."""
    dy, a = (np.ascontiguousarray(x, np.result_type(dy, a, bias)) for x in (dy, a))
    g, total = _activated_back(dy, a, bias)
    return g, unbroadcast(np.asarray(total), bias)


@mirror(CAUSAL_CONV1D)
def causal_conv1d(u, k, bias):
    return _activated(convolved(u, k, rest(u)), bias)


@mirror(CAUSAL_CONV1D)
def causal_conv1d_vjp(dy, u, k, bias):
    g, dbias = _back(dy, convolved(u, k, rest(u)), bias)
    du, dk, _ = convolved_back(g, u, k, rest(u))
    return unbroadcast(du, u), unbroadcast(dk, k), dbias


@mirror(CAUSAL_CONV1D_PACKED)
def causal_conv1d_packed(u, k, bias, resets):
    return _activated(packed(u, k, resets), bias)


@mirror(CAUSAL_CONV1D_PACKED)
def causal_conv1d_packed_vjp(dy, u, k, bias, resets):
    g, dbias = _back(dy, packed(u, k, resets), bias)
    du, dk = packed_back(g, u, k, resets)
    return unbroadcast(du, u), unbroadcast(dk, k), dbias, None


@mirror(CAUSAL_CONV1D_STATEFUL)
def causal_conv1d_stateful(u, k, bias, s0):
    y = _activated(convolved(u, k, s0), bias)
    return y, with_batch(newest(u, k, s0), 1, y.shape[:-1])


@mirror(CAUSAL_CONV1D_STATEFUL)
def causal_conv1d_stateful_vjp(dy, ds, u, k, bias, s0):
    g, dbias = _back(dy, convolved(u, k, s0), bias)
    du, dk, ds0 = pulled_back(g, ds, u, k, s0)
    return du, dk, dbias, ds0


@mirror(CAUSAL_CONV1D_STEP)
def causal_conv1d_step(u, k, bias, s):
    """A convolution of length 1."""
    u = u[..., None]
    y = _activated(convolved(u, k, s), bias)[..., 0]
    return y, with_batch(newest(u, k, s), 1, y.shape)


@mirror(CAUSAL_CONV1D_STEP)
def causal_conv1d_step_vjp(dy, ds_next, u, k, bias, s):
    u = u[..., None]
    g, dbias = _back(dy[..., None], convolved(u, k, s), bias)
    du, dk, ds = pulled_back(g, ds_next, u, k, s)
    return du[..., 0], dk, dbias, ds
