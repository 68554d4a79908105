# pyright: reportMissingImports=false
"""liquid-s4: SSKernelDiag under both rules, and the sums that its kernels are made of.

SSKernelDiag keeps Re w below −1e-4 when a model starts, and so do cases.
"""

from types import SimpleNamespace

import numpy as np
import torch

from refssm.adapters import log_dt
from refssm.subjects.clones import module
from refssm.testing import implements

kernel = module("liquid-s4", "src.models.sequence.ss.kernel")
cauchy = module("liquid-s4", "src.models.functional.cauchy")

DIAGONAL = {
    "framework": "torch",
    "vjp": True,
    "dtypes": ("complex64", "complex128"),
    "kinds": "complex",
    "layout": "d n, d n, d n, d -> d l",
    "adapters": (log_dt(),),
}


def decaying(x):
    """The case with Re w of −1e-4 or less."""
    w = np.minimum(x["w"].real, -1e-4) + 1j * x["w"].imag
    return {**x, "w": w.astype(x["w"].dtype)}


def _diagonal(w, B, C, dt, l, disc):
    """SSKernelDiag.forward of these parameters."""
    parameters = SimpleNamespace(
        log_dt=dt,
        _A=lambda: w,
        B=torch.view_as_real(B),
        C=torch.view_as_real(C)[None],
        H=len(w),
        N=w.shape[-1],
        repeat=1,
        channels=1,
        bandlimit=None,
        disc=disc,
    )
    return kernel.SSKernelDiag.forward(parameters, l)[0][0]


@implements("diagonal_kernel_zoh_real", only=decaying, **DIAGONAL)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """SSKernelDiag(disc="zoh")."""
    return _diagonal(w, B, C, dt, l, "zoh")


@implements("diagonal_kernel_bilinear_real", only=decaying, **DIAGONAL)
def diagonal_kernel_bilinear_real(w, B, C, dt, *, l):
    """SSKernelDiag(disc="bilinear")."""
    return _diagonal(w, B, C, dt, l, "bilinear")


@implements("cauchy_kernel", framework="torch", vjp=True, layout="d n, d n, l -> d l")
def cauchy_kernel(v, w, z):
    """cauchy_naive(conj=False)."""
    return cauchy.cauchy_naive(v, z, w, conj=False)


@implements("krylov_kernel", framework="torch", vjp=True, layout="d n n, d n, d n -> d l")
def krylov_kernel(A, B, C, *, l):
    """krylov of the slow kernel."""
    return kernel.krylov(l, A, B, C)
