"""H3's SSKernelDiag: zero-order hold and bilinear, with dt as its relative sampling rate."""

from types import SimpleNamespace

import torch

from refssm.conformance.clones import module
from refssm.testing import implements

SSKernelDiag = module("H3", "src.models.ssm.ss_kernel_diag").SSKernelDiag
DECLARED = {
    "framework": "torch",
    "vjp": True,
    "dtypes": ("complex64", "complex128"),
    "layout": "d n, d n, d n, d -> d l",
}


def kernel(w, B, C, dt, l, disc):
    """The kernel of one channel for log_dt = 0 and rate = dt."""
    w, B, C = torch.broadcast_tensors(w, B, C)
    rows = max(len(w), len(dt))
    w, B, C = (torch.view_as_real(x.expand(rows, -1)) for x in (w, B, C))
    held = SimpleNamespace(H=rows, N=w.shape[1], channels=1, disc=disc, bandlimit=None)
    held.force_real, held.repeat = False, 1
    held.log_dt, held.B, held.C = torch.zeros_like(dt), B, C[None]
    held._A = lambda: torch.view_as_complex(w)
    return SSKernelDiag.forward(held, l, rate=dt)[0][0]


@implements("diagonal_kernel_zoh_real", **DECLARED)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """disc = "zoh"."""
    return kernel(w, B, C, dt, l, "zoh")


@implements("diagonal_kernel_bilinear_real", **DECLARED)
def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """disc = "bilinear", its default."""
    return kernel(w, B, C, dt, l, "bilinear")
