# pyright: reportMissingImports=false
"""dss's DSSKernel: the versions softmax and exp from their own parameters.

It returns the real part in single precision, so it is called for C and for −iC.
"""

from types import MethodType, SimpleNamespace

import torch

from refssm.adapters import log_dt, neg_exp
from refssm.subjects import some
from refssm.subjects.clones import module
from refssm.testing import implements

DSSKernel = module("dss", "src.models.sequence.ss.standalone.dss").DSSKernel
DECLARED = {"framework": "torch", "vjp": True, "dtypes": ("complex64",), "layout": "n, n,  -> l"}


def kernel(C, dt, l, **parameters):
    """DSSKernel.forward of one row."""
    held = SimpleNamespace(log_dt=dt[None], epsilon=1e-7, **parameters)
    held.W = torch.view_as_real(torch.stack([C, -1j * C])[:, None])
    held._Lambda = MethodType(DSSKernel._Lambda, held)
    real, imaginary = DSSKernel.forward(held, l)[0][:, 0]
    return torch.complex(real, imaginary)


@implements("dss_softmax_kernel", only=some, adapters=(log_dt(),), **DECLARED)
def dss_softmax_kernel(w, C, dt, *, l):
    """version = "softmax", the default; dt holds its logarithm."""
    return kernel(C, dt, l, version="softmax", Lambda=torch.view_as_real(w))


@implements("dss_exp_kernel", only=some, adapters=(log_dt(), neg_exp("w")), **DECLARED)
def dss_exp_kernel(w, C, dt, *, l):
    """version = "exp"; w holds log(−Re w) and Im w, dt its logarithm."""
    return kernel(C, dt, l, version="exp", Lambda_log_neg_re=w.real, Lambda_im=w.imag)
