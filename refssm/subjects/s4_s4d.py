# pyright: reportMissingImports=false
"""s4's minimal S4DKernel, which has no B and one mode of each conjugate pair."""

from types import SimpleNamespace

import torch

from refssm.adapters import halves, log_dt, neg_exp
from refssm.subjects.clones import module
from refssm.testing import implements

S4DKernel = module("s4", "models.s4.s4d").S4DKernel


@implements(
    "dss_exp_kernel",
    framework="torch",
    vjp=True,
    dtypes=("complex64", "complex128"),
    adapters=(log_dt(), neg_exp("w"), halves()),
    layout="d n, d n, d -> d l",
)
def dss_exp_kernel(w, C, dt, *, l):
    """S4DKernel.forward; w holds log(−Re w) and Im w, dt its logarithm."""
    held = SimpleNamespace(log_dt=dt, log_A_real=w.real, A_imag=w.imag)
    held.C = torch.view_as_real(C)
    return S4DKernel.forward(held, l)
