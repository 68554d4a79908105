# pyright: reportMissingImports=false
"""s4's SSMKernelDiag: forward from its own parameters, by zero-order hold and bilinear."""

from types import MethodType, SimpleNamespace

import torch

from refssm.adapters import log_dt, neg_exp
from refssm.subjects.clones import module
from refssm.testing import implements

SSMKernelDiag = module("s4", "models.s4.s4").SSMKernelDiag
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
    """SSMKernelDiag.forward of one channel, with the defaults of its options."""
    rows = max(map(len, (theta, B, C, dt)))
    theta, B, C = (x.expand(rows, -1) for x in (theta, B, C))
    held = SimpleNamespace(H=rows, N=B.shape[1], channels=1, disc=disc, backend="naive", repeat=1)
    held.is_real = held.dt_fast = held.bandlimit = None
    held.dt_transform, held.real_transform, held.imag_transform = "exp", "exp", "none"
    held.inv_dt, held.A_real, held.A_imag = dt[:, None].expand(rows, 1), theta.real, -theta.imag
    held.B, held.C = torch.view_as_real(B)[None], torch.view_as_real(C)[None]
    held._get_params = MethodType(SSMKernelDiag._get_params, held)
    return SSMKernelDiag.forward(held, l)[0][0]


@implements("diagonal_kernel_zoh_real", only=some, **DECLARED)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """disc = "zoh", its default; w holds log(−Re w) and Im w, dt its logarithm."""
    return kernel(w, B, C, dt, l, "zoh")


@implements("diagonal_kernel_bilinear_real", only=some, **DECLARED)
def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """disc = "bilinear"."""
    return kernel(w, B, C, dt, l, "bilinear")
