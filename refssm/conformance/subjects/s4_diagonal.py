"""s4's SSMKernelDiag: forward with the dt, A, B and C that its _get_params would return."""

from types import SimpleNamespace

import torch

from refssm.conformance.clones import module
from refssm.testing import implements

DECLARED = {"framework": "torch", "vjp": True, "layout": "d n, d n, d n, d -> d l"}
SSMKernelDiag = module("s4", "models.s4.s4").SSMKernelDiag


def kernel(w, B, C, dt, l, disc):
    """The kernel of one channel; A, B and C in one type, as in the module."""
    rows, kind = max(map(len, (w, B, C, dt))), (w[:1] * B[:1] * C[:1]).dtype
    w, B, C = (x.to(kind).expand(rows, -1) for x in (w, B, C))
    given = dt[:, None].expand(rows, 1), w, B[None], C[None]
    module = SimpleNamespace(H=rows, N=w.shape[-1], channels=1, disc=disc, backend="naive")
    module._get_params = lambda rate: given
    return SSMKernelDiag.forward(module, l)[0][0]


@implements("diagonal_kernel_zoh_real", **DECLARED)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """disc = "zoh"."""
    return kernel(w, B, C, dt, l, "zoh")


@implements("diagonal_kernel_bilinear_real", **DECLARED)
def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """disc = "bilinear"."""
    return kernel(w, B, C, dt, l, "bilinear")
