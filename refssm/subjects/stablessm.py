# pyright: reportMissingImports=false
"""StableSSM's kernel with two of its parametrisations; it has no B and gets C·B for C."""

from types import SimpleNamespace

import torch

from refssm.adapters import log_dt, neg_exp, neg_softplus
from refssm.subjects.clones import module
from refssm.testing import implements

stable = module("StableSSM", "src.models.recurrent.stablessm")

KERNEL = {
    "framework": "torch",
    "vjp": True,
    "dtypes": ("complex64", "complex128"),
    "kinds": "complex",
    "layout": "d n, d n, d n, d -> d l",
}


def kernel(w, B, C, dt, l, parameterization):
    """STABLESSMKernel.forward; w holds its parameter of Re A and Im A, dt is log dt."""
    held = SimpleNamespace(parameterization=parameterization, log_dt=dt)
    held.C, held.log_A_real, held.A_imag = torch.view_as_real(C * B), w.real, w.imag
    return stable.STABLESSMKernel.forward(held, l)


@implements("diagonal_kernel_zoh_real", adapters=(log_dt(), neg_exp("w")), **KERNEL)
def kernel_exp(w, B, C, dt, *, l):
    """STABLESSMKernel(parameterization="exp").forward."""
    return kernel(w, B, C, dt, l, "exp")


@implements("diagonal_kernel_zoh_real", adapters=(log_dt(), neg_softplus("w")), **KERNEL)
def kernel_softplus(w, B, C, dt, *, l):
    """STABLESSMKernel(parameterization="softplus").forward."""
    return kernel(w, B, C, dt, l, "softplus")
