"""Mirrors of refssm.convolution.circular: transforms of length l, whatever its factors are."""

from __future__ import annotations

from refssm.convolution import CIRCULAR_CONVOLUTION
from refssm_gpu._launching.checked import mirror
from refssm_gpu.convolution.transforms import convolved, correlated, gradients


@mirror(CIRCULAR_CONVOLUTION)
def circular_convolution(u, k):
    l = u.shape[-1]
    return convolved(u, k, max(l, 1))[..., :l]  # a transform needs at least one point


@mirror(CIRCULAR_CONVOLUTION)
def circular_convolution_vjp(dy, u, k):
    return gradients(correlated(dy, u, k, max(u.shape[-1], 1)), (u, k))
