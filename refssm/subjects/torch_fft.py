# pyright: reportMissingImports=false
"""torch.fft: a causal convolution by real transforms of twice the length."""

import torch

from refssm.testing import implements


@implements("causal_convolution", framework="torch", vjp=True)
def causal_convolution(u, k):
    """rfft if both arguments are real, fft if one is complex."""
    l = u.shape[-1]
    if u.is_complex() or k.is_complex():
        return torch.fft.ifft(torch.fft.fft(u, 2 * l) * torch.fft.fft(k, 2 * l))[..., :l]
    return torch.fft.irfft(torch.fft.rfft(u, 2 * l) * torch.fft.rfft(k, 2 * l), 2 * l)[..., :l]
