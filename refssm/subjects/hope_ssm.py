# pyright: reportMissingImports=false
"""HOPE-SSM's HOPE_SSM_Kernel: the transfer function of Markov parameters at warped nodes."""

from types import SimpleNamespace

import torch

from refssm.adapters import log_dt
from refssm.subjects import some
from refssm.subjects.clones import module
from refssm.testing import implements

HOPE_SSM_Kernel = module("HOPE-SSM", "models.s4.HOPE_SSM").HOPE_SSM_Kernel


@implements(
    "hope_transfer",
    framework="torch",
    vjp=True,
    dtypes=("complex64", "complex128"),
    kinds="complex",
    only=some,
    adapters=(log_dt(),),
    layout="d n, d -> d l",
)
def hope_transfer(h, dt, *, l):
    """HOPE_SSM_Kernel.forward(L); dt holds its logarithm."""
    rows = max(len(h), len(dt))
    h, dt = h.expand(rows, -1), dt.expand(rows)
    held = SimpleNamespace(log_dt=dt, h=rows, n=h.shape[1], H=torch.view_as_real(h))
    return HOPE_SSM_Kernel.forward(held, l)
