"""Mirrors of refssm.convolution.bidirectional: both kernels as one, on a circle.

Lag −j is lag p − j on a circle of p ≥ 2l − 1 points, so the kernel of the future goes to the end of
the period, backwards, and one convolution replaces two.
"""

from __future__ import annotations

from refssm.convolution import BIDIRECTIONAL_CONVOLUTION, BIDIRECTIONAL_CONVOLUTION_SHIFTED
from refssm_gpu._algebra.parts import along, batch_of
from refssm_gpu._algebra.transforms import good_length
from refssm_gpu._launching.arrays import Array, namespace, unbroadcast
from refssm_gpu._launching.checked import mirror
from refssm_gpu.convolution.transforms import convolved, correlated, gradients, of_one_type


@mirror(BIDIRECTIONAL_CONVOLUTION)
def bidirectional_convolution(u, k, kr):
    return _convolved(u, k, kr, 0)


@mirror(BIDIRECTIONAL_CONVOLUTION)
def bidirectional_convolution_vjp(dy, u, k, kr):
    return _gradients(dy, u, k, kr, 0)


@mirror(BIDIRECTIONAL_CONVOLUTION_SHIFTED)
def bidirectional_convolution_shifted(u, k, kr):
    return _convolved(u, k, kr, 1)


@mirror(BIDIRECTIONAL_CONVOLUTION_SHIFTED)
def bidirectional_convolution_shifted_vjp(dy, u, k, kr):
    return _gradients(dy, u, k, kr, 1)


def _convolved(u: Array, k: Array, kr: Array, shift: int) -> Array:
    p = good_length(2 * u.shape[-1] - 1)
    return convolved(u, _around(k, kr, shift, p), p)[..., : u.shape[-1]]


def _around(k: Array, kr: Array, shift: int, p: int) -> Array:
    """κ_j = k_j at lags from 0, and k'_j at lag −j − shift; without shift both meet at lag 0.

    The last `shift` taps of k' reach no output. A product with 0 lets their NaN reach all outputs,
    as in the reference.
    """
    xp, l = namespace(k, kr), k.shape[-1]
    k, kr = (along(x, batch_of((k, kr), (1, 1)), 1) for x in of_one_type(k, kr))
    meeting = kr[..., :1] if not shift else 0 * kr[..., -1:]
    future = xp.flip(kr[..., 1:] if not shift else kr[..., :-1], axis=-1)
    gap = xp.zeros((*k.shape[:-1], p - l - future.shape[-1]), dtype=k.dtype)
    return xp.concat([k[..., :1] + meeting, k[..., 1:], gap, future], axis=-1)


def _gradients(dy: Array, u: Array, k: Array, kr: Array, shift: int) -> tuple[Array, ...]:
    """The gradient of κ, cut up and turned around; it exists for the last taps, but is zero."""
    l, p = u.shape[-1], good_length(2 * u.shape[-1] - 1)
    kernel = _around(k, kr, shift, p)
    du, dkernel = correlated(dy, u, kernel, p)
    xp = namespace(dkernel)
    future = xp.flip(dkernel[..., p - max(l - 1, 0) :], axis=-1)  # lags −1, −2, …
    edge = dkernel[..., : min(l, 1)]
    own = xp.concat([future, 0 * edge] if shift else [edge, future], axis=-1)
    return *gradients((du, dkernel), (u, k)), unbroadcast(own, kr)
