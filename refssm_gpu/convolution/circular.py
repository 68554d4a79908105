"""Mirrors of refssm.convolution.circular: transforms of length l, whatever its factors are."""

from __future__ import annotations

from refssm.convolution import CIRCULAR_CONVOLUTION
from refssm_gpu._launching.checked import checked, checked_vjp
from refssm_gpu.convolution.transforms import convolved, correlated, gradients


def circular_convolution(u, k):
    """Mirror of refssm.circular_convolution."""
    l = u.shape[-1]
    return convolved(u, k, max(l, 1))[..., :l]  # a transform needs at least one point


def circular_convolution_vjp(dy, u, k):
    """Mirror of refssm.circular_convolution_vjp."""
    return gradients(correlated(dy, u, k, max(u.shape[-1], 1)), (u, k))


circular_convolution = checked(CIRCULAR_CONVOLUTION, circular_convolution)
circular_convolution_vjp = checked_vjp(CIRCULAR_CONVOLUTION, circular_convolution_vjp)
