"""Two bfloat16 scans that declare float32 arithmetic: one accumulates in float32, one does not."""

import torch

from refssm.testing import Budget, implements


def looped(a, b, x):
    states = []
    for k in range(b.shape[-2]):
        x = a[..., k, :] * x + b[..., k, :]
        states.append(x)
    return torch.stack(states, -2)


@implements(
    "linear_scan", framework="torch", dtypes=("bfloat16",), accuracy=Budget(computes="float32")
)
def accumulates_in_float32(a, b):
    a, b = a.float(), b.float()
    return looped(a, b, torch.zeros_like(b[..., 0, :])).to(torch.bfloat16)


@implements(
    "linear_scan", framework="torch", dtypes=("bfloat16",), accuracy=Budget(computes="float32")
)
def accumulates_in_bfloat16(a, b):
    return looped(a, b, torch.zeros_like(b[..., 0, :]))
