# pyright: reportMissingImports=false
"""A PyTorch loop over time, the most common way to write a scan, with autograd's gradient."""

import torch

from refssm.testing import implements


def _looped(a, b, x):
    states = []
    # not a[..., k, :]: the gradient of each slice is an array of all steps, so time grows as l²
    for a_k, b_k in zip(a.unbind(-2), b.unbind(-2), strict=True):
        x = a_k * x + b_k
        states.append(x)
    return torch.stack(states, -2)


@implements("linear_scan", framework="torch", vjp=True)
def linear_scan(a, b):
    """The loop from a zero state."""
    return _looped(a, b, torch.zeros_like(b[..., 0, :], dtype=torch.result_type(a, b)))


@implements("linear_scan_from", framework="torch", vjp=True)
def linear_scan_from(a, b, x0):
    """The loop from x0."""
    return _looped(a, b, x0.to(torch.result_type(a, x0)))
