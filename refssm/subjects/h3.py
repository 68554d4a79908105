# pyright: reportMissingImports=false
"""H3's kernels: SSKernelShift, EMAKernel, and SSKernelDiag from its own parameters."""

from types import MethodType, SimpleNamespace

import torch

from refssm.adapters import log_dt, neg_exp
from refssm.subjects import some
from refssm.subjects.clones import module
from refssm.testing import implements

SSKernelShift = module("H3", "src.models.ssm.ss_kernel_shift").SSKernelShift
diagonal = module("H3", "src.models.ssm.ss_kernel_diag")


class ShiftParameters:
    """What SSKernelShift.forward reads, with tensors for its parameters."""

    def __init__(self, B, C):
        self.N, self.H = B.shape[-1], len(B)
        self.B, self.C = B, C[None]


@implements(
    "shift_kernel", framework="torch", vjp=True, dtypes=("float32",), layout="d n, d n -> d l"
)
def shift_kernel(B, C, *, l):
    """SSKernelShift.forward without a state, by FFT."""
    return SSKernelShift.forward(ShiftParameters(*torch.broadcast_tensors(B, C)), L=l)[0][0]


@implements(
    "ema_kernel",
    framework="torch",
    vjp=True,
    dtypes=("float32", "float64"),
    layout="d n, d n, d n, d n -> d l",
)
def ema_kernel(delta, alpha, beta, gamma, *, l):
    """EMAKernel.forward of one channel, a translation of Mega's MultiHeadEMA."""
    delta, alpha, beta, gamma = torch.broadcast_tensors(delta, alpha, beta, gamma)
    held = SimpleNamespace(l_max=None, efficient_bidirectional=False, channels=1)
    held.delta, held.alpha, held.beta = (x[..., None] for x in (delta, alpha, beta))
    held.gamma, held.scale = gamma, diagonal.EMAKernel(1, max(1, gamma.shape[-1])).scale
    held.coeffs = lambda: diagonal.EMAKernel.coeffs(held)
    return diagonal.EMAKernel.forward(held, l)[0][0]


DECLARED = {
    "framework": "torch",
    "vjp": True,
    "dtypes": ("complex64", "complex128"),
    "adapters": (log_dt(), neg_exp("w")),
    "layout": "d n, d n, d n, d -> d l",
}


def kernel(theta, B, C, dt, l, disc):
    """SSKernelDiag.forward of one channel, with the defaults of its options."""
    rows = max(map(len, (theta, B, C, dt)))
    theta, B, C = (x.expand(rows, -1) for x in (theta, B, C))
    held = SimpleNamespace(H=rows, N=B.shape[1], channels=1, disc=disc, repeat=1, real_type="exp")
    held.bandlimit = held.force_real = None
    held.log_dt, held.inv_A_real, held.A_imag = dt.expand(rows), theta.real, theta.imag
    held.B, held.C = torch.view_as_real(B), torch.view_as_real(C)[None]
    held._A = MethodType(diagonal.SSKernelDiag._A, held)
    return diagonal.SSKernelDiag.forward(held, l)[0][0]


@implements("diagonal_kernel_zoh_real", only=some, **DECLARED)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """disc = "zoh"; w holds log(−Re w) and Im w, dt its logarithm."""
    return kernel(w, B, C, dt, l, "zoh")


@implements("diagonal_kernel_bilinear_real", only=some, **DECLARED)
def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """disc = "bilinear", its default."""
    return kernel(w, B, C, dt, l, "bilinear")
