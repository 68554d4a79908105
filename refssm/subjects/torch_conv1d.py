# pyright: reportMissingImports=false
"""torch.nn.functional.conv1d with one group per channel: a short convolution."""

import torch
from torch.nn.functional import conv1d

from refssm.testing import implements


@implements("short_convolution", framework="torch", vjp=True, layout="b d l, d t -> b d l")
def short_convolution(u, k):
    """A correlation, whose weights are the taps in reverse order."""
    (d, t), l, kind = k.shape, u.shape[-1], torch.result_type(u, k)
    if t == 0 or u.shape[1] != d:
        raise NotImplementedError("no taps, or channels that share an input")
    weights = k.flip(-1)[:, None].to(kind)
    return conv1d(u.to(kind), weights, padding=t - 1, groups=d)[..., :l]
