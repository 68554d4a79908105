# pyright: reportMissingImports=false
"""H3's SSKernelDiag from its own parameters, by zero-order hold and bilinear."""

from types import MethodType, SimpleNamespace

import torch

from refssm.adapters import log_dt, neg_exp
from refssm.subjects.clones import module
from refssm.testing import implements

SSKernelDiag = module("H3", "src.models.ssm.ss_kernel_diag").SSKernelDiag
DECLARED = {
    "framework": "torch",
    "vjp": True,
    "dtypes": ("complex64", "complex128"),
    "adapters": (log_dt(), neg_exp("w")),
    "layout": "d n, d n, d n, d -> d l",
}


def some(x):
    """The case if it has a step."""
    return x if x["l"] else None


def kernel(theta, B, C, dt, l, disc):
    """SSKernelDiag.forward of one channel, with the defaults of its options."""
    rows = max(map(len, (theta, B, C, dt)))
    theta, B, C = (x.expand(rows, -1) for x in (theta, B, C))
    held = SimpleNamespace(H=rows, N=B.shape[1], channels=1, disc=disc, repeat=1, real_type="exp")
    held.bandlimit = held.force_real = None
    held.log_dt, held.inv_A_real, held.A_imag = dt.expand(rows), theta.real, theta.imag
    held.B, held.C = torch.view_as_real(B), torch.view_as_real(C)[None]
    held._A = MethodType(SSKernelDiag._A, held)
    return SSKernelDiag.forward(held, l)[0][0]


@implements("diagonal_kernel_zoh_real", only=some, **DECLARED)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """disc = "zoh"; w holds log(−Re w) and Im w, dt its logarithm."""
    return kernel(w, B, C, dt, l, "zoh")


@implements("diagonal_kernel_bilinear_real", only=some, **DECLARED)
def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """disc = "bilinear", its default."""
    return kernel(w, B, C, dt, l, "bilinear")
