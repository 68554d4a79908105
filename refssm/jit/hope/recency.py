"""Numba mirrors of refssm.hope.recency: one kernel for both weights."""

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.hope import HOPE_RECENCY_EXPONENTIAL, HOPE_RECENCY_POWER
from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.mirror import mirror


@gufunc("(n),(),(n)->(n)")
def _weighted(h, rate, slope, y):
    """h_j e^(rate · slope_j)."""
    for j in range(h.size):
        y[j] = h[j] * np.exp(rate[0] * slope[j])


@gufunc("(n),(n),(),(n)->(n),()")
def _weighted_back(dy, h, rate, slope, dh, d):
    """dh_j = e^(rate · slope_j) dy_j, and Σ_j slope_j dy_j* y_j."""
    d[0] = 0
    for j in range(h.size):
        weight = np.exp(rate[0] * slope[j])
        dh[j] = weight * dy[j]
        d[0] += np.conj(dy[j]) * (weight * h[j]) * slope[j]


def _logarithms(h):
    return np.log1p(_indices(h))


def _indices(h):
    return np.arange(h.shape[-1], dtype=np.finfo(h.dtype).dtype)


@mirror(HOPE_RECENCY_POWER)
def hope_recency_power(h, gamma):
    return _weighted(h, gamma, _logarithms(h))


@mirror(HOPE_RECENCY_POWER)
def hope_recency_power_vjp(dy, h, gamma):
    return unbroadcast_each(_weighted_back(dy, h, gamma, _logarithms(h)), (h, gamma))


@mirror(HOPE_RECENCY_EXPONENTIAL)
def hope_recency_exponential(h, beta):
    return _weighted(h, beta, -_indices(h))


@mirror(HOPE_RECENCY_EXPONENTIAL)
def hope_recency_exponential_vjp(dy, h, beta):
    return unbroadcast_each(_weighted_back(dy, h, beta, -_indices(h)), (h, beta))
