# pyright: reportMissingImports=false
"""H3's EMAKernel, a translation of Mega's MultiHeadEMA."""

from types import SimpleNamespace

import torch

from refssm.subjects.clones import module
from refssm.testing import implements

EMAKernel = module("H3", "src.models.ssm.ss_kernel_diag").EMAKernel


@implements(
    "ema_kernel",
    framework="torch",
    vjp=True,
    dtypes=("float32", "float64"),
    layout="d n, d n, d n, d n -> d l",
)
def ema_kernel(delta, alpha, beta, gamma, *, l):
    """EMAKernel.forward of one channel."""
    delta, alpha, beta, gamma = torch.broadcast_tensors(delta, alpha, beta, gamma)
    held = SimpleNamespace(l_max=None, efficient_bidirectional=False, channels=1)
    held.delta, held.alpha, held.beta = (x[..., None] for x in (delta, alpha, beta))
    held.gamma, held.scale = gamma, EMAKernel(1, max(1, gamma.shape[-1])).scale
    held.coeffs = lambda: EMAKernel.coeffs(held)
    return EMAKernel.forward(held, l)[0][0]
