"""dss's DSSKernel: the versions softmax and exp, with Λ, W and Δ given as they are.

It returns the real part, so it is called for C and for −iC.
"""

from types import SimpleNamespace

import torch

from refssm.conformance.clones import module
from refssm.testing import implements

DSSKernel = module("dss", "src.models.sequence.ss.standalone.dss").DSSKernel
DECLARED = {
    "framework": "torch",
    "vjp": True,
    "dtypes": ("complex64",),
    "layout": "n, n,  -> l",
}


def kernel(w, C, dt, l, version):
    """DSSKernel.forward of one row."""
    held = SimpleNamespace(version=version, epsilon=1e-7, _Lambda=lambda: w)
    held.log_dt = SimpleNamespace(ndim=1, exp=lambda: dt[None])
    held.W = torch.view_as_real(torch.stack([C, -1j * C])[:, None])
    real, imaginary = DSSKernel.forward(held, l)[0][:, 0]
    return torch.complex(real, imaginary)


def some(x):
    """The case if it has a step, which DSSKernel.forward asserts."""
    return x if x["l"] else None


@implements("dss_softmax_kernel", only=some, **DECLARED)
def dss_softmax_kernel(w, C, dt, *, l):
    """version = "softmax", the default."""
    return kernel(w, C, dt, l, "softmax")


@implements("dss_exp_kernel", only=some, **DECLARED)
def dss_exp_kernel(w, C, dt, *, l):
    """version = "exp"."""
    return kernel(w, C, dt, l, "exp")
