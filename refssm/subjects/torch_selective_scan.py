# pyright: reportMissingImports=false
"""Mamba's scan in PyTorch: a loop over time by blocks of steps, which the gradient computes again.

Exponentials of a block are one large operation, and only the recurrence itself goes step by step.
"""

import torch
from torch.nn.functional import silu, softplus
from torch.utils.checkpoint import checkpoint

from refssm.testing import implements

BLOCK = 64
SCANNED = "b d l, b d l, d n, b n l, b n l"
DECLARED = {"framework": "torch", "vjp": True}


def _block(x, u, dt, A, B, C):
    """The state after a block of steps, and its outputs; time is the first axis, d the last."""
    decays, drives = torch.exp(dt[:, None] * A), (dt * u)[:, None] * B
    states = []
    for decay, drive in zip(decays.unbind(), drives.unbind(), strict=True):
        x = decay * x + drive
        states.append(x)
    return x, (torch.stack(states) * C).sum(1)


def _scanned(u, dt, A, B, C):
    A = A.T[:, None]  # (n, 1, d)
    u, dt = (a.movedim(-1, 0).contiguous() for a in (u, dt))
    B, C = (a.permute(2, 1, 0)[..., None].contiguous() for a in (B, C))  # (l, n, b, 1)
    shape = A.shape[0], max(u.shape[1], B.shape[2]), max(u.shape[2], A.shape[2])
    kind = (A.flatten()[:1] * B.flatten()[:1]).dtype
    x, y = torch.zeros(shape, dtype=kind, device=u.device), []
    for k in range(0, len(u), BLOCK):
        window = slice(k, k + BLOCK)
        pieces = u[window], dt[window], A, B[window], C[window]
        x, more = checkpoint(_block, x, *pieces, use_reentrant=False)
        y.append(more)
    return torch.cat(y).movedim(0, -1) if y else u.movedim(0, -1)


@implements("selective_scan", layout=f"{SCANNED} -> b d l", **DECLARED)
def selective_scan(u, dt, A, B, C):
    """The scan alone."""
    return _scanned(u, dt, A, B, C)


@implements("mamba_scan", layout=f"{SCANNED}, d, b d l, d -> b d l", **DECLARED)
def mamba_scan(u, dt, A, B, C, D, z, dt_bias):
    """The scan with bias and softplus before it, skip connection and gate after it."""
    y = _scanned(u, softplus(dt + dt_bias[:, None]), A, B, C)
    return (y + D[:, None] * u) * silu(z)
