"""Numba mirrors of refssm.linear_attention.gates: whole rows at once, across SIMD lanes.

Rates and slopes, one for each head or key, are worked out before, once for all steps.
"""

# pyright: reportCallIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each, with_batch
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors import exponential
from refssm.jit._vectors.rows import adjacent
from refssm.linear_attention.gates import GATED_DELTA_GATES, KIMI_GATES, KIMI_GATES_BOUNDED

KINDS = ("f4", "f8")


@part
def _decay_row(a, rate, dt_bias, log_g):
    for n in range(a.size):
        log_g[n] = rate[n] * exponential.softplus(a[n] + dt_bias[n])


@gufunc("(n),(n),(n)->(n)", kinds=KINDS)
def _decays(a, rate, dt_bias, log_g):
    """rate softplus(a + dt_bias)."""
    _decay_row(adjacent(a), adjacent(rate), adjacent(dt_bias), adjacent(log_g))


@part
def _decay_back_row(dlog_g, a, rate, dt_bias, through, of_rate):
    for n in range(a.size):
        v = a[n] + dt_bias[n]
        through[n] = dlog_g[n] * (rate[n] * exponential.sigmoid(v))
        of_rate[n] = dlog_g[n] * (rate[n] * exponential.softplus(v))


@gufunc("(n),(n),(n),(n)->(n),(n)", kinds=KINDS)
def _decays_back(dlog_g, a, rate, dt_bias, through, of_rate):
    """The cotangents of a + dt_bias, and of the logarithm of the rate."""
    row = adjacent(dlog_g), adjacent(a), adjacent(rate), adjacent(dt_bias)
    _decay_back_row(*row, adjacent(through), adjacent(of_rate))


@part
def _open_row(slope, a, dt_bias, y):
    for n in range(a.size):
        y[n] = exponential.sigmoid(slope[n] * (a[n] + dt_bias[n]))


@gufunc("(n),(n),(n)->(n)", kinds=KINDS)
def _open(slope, a, dt_bias, y):
    """σ(slope (a + dt_bias))."""
    _open_row(adjacent(slope), adjacent(a), adjacent(dt_bias), adjacent(y))


@part
def _open_back_row(dy, slope, a, dt_bias, through, of_slope):
    for n in range(a.size):
        z = slope[n] * (a[n] + dt_bias[n])
        dz = dy[n] * exponential.sigmoid(z) * exponential.sigmoid(-z)
        through[n] = slope[n] * dz
        of_slope[n] = z * dz


@gufunc("(n),(n),(n),(n)->(n),(n)", kinds=KINDS)
def _open_back(dy, slope, a, dt_bias, through, of_slope):
    """The cotangents of a + dt_bias, and of the logarithm of the slope."""
    row = adjacent(dy), adjacent(slope), adjacent(a), adjacent(dt_bias)
    _open_back_row(*row, adjacent(through), adjacent(of_slope))


def _rows(*arrays):
    """The arrays with contiguous rows of one length."""
    wide = np.broadcast_shapes(*(x.shape[-1:] for x in arrays))
    rows = (np.broadcast_to(x, (*x.shape[:-1], *wide)) for x in arrays)
    return [np.ascontiguousarray(x) for x in rows]


@mirror(GATED_DELTA_GATES)
def gated_delta_gates(a, b, A_log, dt_bias):
    log_g = _decays(*_rows(a, -np.exp(A_log), dt_bias))
    one, zero = np.ones_like(b, shape=b.shape[-1:]), np.zeros_like(b, shape=b.shape[-1:])
    beta = _open(*_rows(one, b, zero))
    batch = np.broadcast_shapes(log_g.shape[:-1], beta.shape[:-1])
    return with_batch(log_g, 1, batch), with_batch(beta, 1, batch)


@mirror(GATED_DELTA_GATES)
def gated_delta_gates_vjp(dlog_g, dbeta, a, b, A_log, dt_bias):
    through, dA_log = _decays_back(*_rows(dlog_g, a, -np.exp(A_log), dt_bias))
    one, zero = np.ones_like(b, shape=b.shape[-1:]), np.zeros_like(b, shape=b.shape[-1:])
    db, _ = _open_back(*_rows(dbeta, one, b, zero))
    return unbroadcast_each((through, db, dA_log, through.copy()), (a, b, A_log, dt_bias))


@mirror(KIMI_GATES)
def kimi_gates(a, A_log, dt_bias):
    return _decays(*_rows(a, -np.exp(A_log)[..., None], dt_bias))


@mirror(KIMI_GATES)
def kimi_gates_vjp(dlog_g, a, A_log, dt_bias):
    through, of_rate = _decays_back(*_rows(dlog_g, a, -np.exp(A_log)[..., None], dt_bias))
    return unbroadcast_each((through, of_rate.sum(-1), through.copy()), (a, A_log, dt_bias))


@mirror(KIMI_GATES_BOUNDED)
def kimi_gates_bounded(a, A_log, dt_bias, *, c=-5.0):
    return c * _open(*_rows(np.exp(A_log)[..., None], a, dt_bias))


@mirror(KIMI_GATES_BOUNDED)
def kimi_gates_bounded_vjp(dlog_g, a, A_log, dt_bias, *, c=-5.0):
    rows = _rows(dlog_g, np.exp(A_log)[..., None], a, dt_bias)
    through, of_slope = (c * g for g in _open_back(*rows))
    return unbroadcast_each((through, of_slope.sum(-1), through.copy()), (a, A_log, dt_bias))
