# pyright: reportMissingImports=false
"""StableSSM's kernel with its parametrisation "direct"; the others have logarithms of A.

It has log dt. At dt = 1 nothing is lost, so cases get dt·w for w and dt = 1, and Re w below −1e-4,
because it divides by w.
"""

from types import SimpleNamespace

import numpy as np
import torch

from refssm.conformance.clones import module
from refssm.testing import implements

stable = module("StableSSM", "src.models.recurrent.stablessm")


def step_of_one(x):
    """The case with dt·w for w and a step of 1."""
    w = x["w"] * x["dt"][..., None]
    w = np.minimum(w.real, -1e-4) + 1j * w.imag
    return {**x, "w": w.astype(x["w"].dtype), "dt": np.ones_like(x["dt"])}


@implements(
    "diagonal_kernel_zoh_real",
    framework="torch",
    vjp=True,
    dtypes=("complex64", "complex128"),
    kinds="complex",
    layout="d n, d n, d n, d -> d l",
    only=step_of_one,
)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """STABLESSMKernel.forward, which has no B: it gets C·B for C."""
    parameters = SimpleNamespace(
        parameterization="direct",
        log_dt=dt.log(),
        C=torch.view_as_real(C * B),
        log_A_real=w.real,
        A_imag=w.imag,
    )
    return stable.STABLESSMKernel.forward(parameters, l)
