# pyright: reportMissingImports=false
"""PyTorch, a loop over time: the scan everybody writes first, and autograd's gradient of it."""

import torch

from refssm.testing import implements


def _looped(a, b, x):
    states = []
    for k in range(b.shape[-2]):
        x = a[..., k, :] * x + b[..., k, :]
        states.append(x)
    return torch.stack(states, -2)


@implements("linear_scan", framework="torch", vjp=True)
def linear_scan(a, b):
    """From rest."""
    return _looped(a, b, torch.zeros_like(b[..., 0, :], dtype=torch.result_type(a, b)))


@implements("linear_scan_from", framework="torch", vjp=True)
def linear_scan_from(a, b, x0):
    """From a state."""
    return _looped(a, b, x0.to(torch.result_type(a, x0)))
