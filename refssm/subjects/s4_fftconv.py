# pyright: reportMissingImports=false
"""s4's FFTConv.forward around given kernels, with D = 0 and no activation."""

from types import SimpleNamespace

import torch
from torch.nn import Identity

from refssm.subjects.clones import module
from refssm.testing import implements

FFTConv = module("s4", "models.s4.s4").FFTConv
DECLARED = {"framework": "torch", "vjp": True, "dtypes": ("float32", "float64")}


def convolved(u, kernels, **options):
    """FFTConv.forward; kernels (c, d, l)."""
    layer = SimpleNamespace(transposed=True, L=None, swap_channels=False, **options)
    layer.drop = layer.drop_kernel = layer.activation = Identity()
    layer.kernel = lambda **_: (kernels, None)
    layer.D = torch.zeros_like(kernels[:1, :, 0])
    return FFTConv.forward(layer, u)[0]


@implements("causal_convolution", layout="b d l, d l -> b d l", **DECLARED)
def causal_convolution(u, k):
    """In one direction."""
    return convolved(u, k[None], bidirectional=False)


@implements("bidirectional_convolution_shifted", layout="b d l, d l, d l -> b d l", **DECLARED)
def bidirectional_convolution_shifted(u, k, k_back):
    """In both directions, the other kernel one step late."""
    return convolved(u, torch.stack([k, k_back]), bidirectional=True)
