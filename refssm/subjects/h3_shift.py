# pyright: reportMissingImports=false
"""H3's SSKernelShift: the shift kernel by FFT."""

import torch

from refssm.subjects.clones import module
from refssm.testing import implements

SSKernelShift = module("H3", "src.models.ssm.ss_kernel_shift").SSKernelShift


class Held:
    """What SSKernelShift.forward reads, with tensors for its parameters."""

    def __init__(self, B, C):
        self.N, self.H = B.shape[-1], len(B)
        self.B, self.C = B, C[None]


@implements(
    "shift_kernel", framework="torch", vjp=True, dtypes=("float32",), layout="d n, d n -> d l"
)
def shift_kernel(B, C, *, l):
    """SSKernelShift.forward without a state."""
    return SSKernelShift.forward(Held(*torch.broadcast_tensors(B, C)), L=l)[0][0]
