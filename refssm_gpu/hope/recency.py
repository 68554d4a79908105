"""Mirrors of refssm.hope.recency: elementwise formulas."""

from __future__ import annotations

from refssm.hope import HOPE_RECENCY_EXPONENTIAL, HOPE_RECENCY_POWER
from refssm_gpu._algebra.parts import conj, counting
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast
from refssm_gpu._launching.checked import mirror


@mirror(HOPE_RECENCY_POWER)
def hope_recency_power(h, gamma):
    return h * _weights(gamma, _logarithms(h))


def _logarithms(h: Array) -> Array:
    """log(j + 1)."""
    return namespace(h).log1p(counting(h.shape[-1], h))


def _weights(parameter: Array, slope: Array) -> Array:
    """e^(parameter · slope_j)."""
    return namespace(slope).exp(parameter[..., None] * slope)


@mirror(HOPE_RECENCY_POWER)
def hope_recency_power_vjp(dy, h, gamma):
    return _gradients(dy, h, gamma, _logarithms(h))


def _gradients(dy: Array, h: Array, parameter: Array, slope: Array) -> tuple[Array, Array]:
    """Gradients of h e^(parameter · slope)."""
    weights = _weights(parameter, slope)
    d = namespace(dy).sum(conj(dy) * (h * weights) * slope, axis=-1)
    return unbroadcast(dy * weights, h), unbroadcast(d, parameter)


@mirror(HOPE_RECENCY_EXPONENTIAL)
def hope_recency_exponential(h, beta):
    return h * _weights(beta, -counting(h.shape[-1], h))


@mirror(HOPE_RECENCY_EXPONENTIAL)
def hope_recency_exponential_vjp(dy, h, beta):
    return _gradients(dy, h, beta, -counting(h.shape[-1], h))
