"""Mirrors of refssm.convolution.causal: zero padding to a length that cuFFT likes."""

from __future__ import annotations

from refssm.convolution import CAUSAL_CONVOLUTION
from refssm_gpu._algebra.transforms import good_length
from refssm_gpu._launching.checked import mirror
from refssm_gpu.convolution.transforms import convolved, correlated, gradients


@mirror(CAUSAL_CONVOLUTION)
def causal_convolution(u, k):
    """Padded to 2l−1 or the next product of 2, 3, 5 and 7."""
    return convolved(u, k, good_length(2 * u.shape[-1] - 1))[..., : u.shape[-1]]


@mirror(CAUSAL_CONVOLUTION)
def causal_convolution_vjp(dy, u, k):
    """Three transforms forward, two back."""
    return gradients(correlated(dy, u, k, good_length(2 * u.shape[-1] - 1)), (u, k))
