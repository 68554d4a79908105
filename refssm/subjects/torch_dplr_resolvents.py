# pyright: reportMissingImports=false, reportCallIssue=false, reportAttributeAccessIssue=false
"""S4's aliased kernel in PyTorch: resolvents that share poles, and Woodbury's identity."""

import torch

from refssm.subjects.torch_kernels import by_rows, half_circle, real_type
from refssm.testing import implements

LAYOUT = "d n, d n r, d n r, d n, d n, d -> d l"


def _spectrum(w, P, Q, B, C, dt, below, above):
    """2 C (diag D + (1 + z) P Qᴴ)⁻¹ B, D = 2 (1 − z)/dt − (1 + z) w, at the roots of unity."""
    kind, rank = below.dtype, P.shape[-1]
    R = torch.reciprocal(2 / dt * below - above * w[:, None])  # (n, l)
    left = torch.cat([C[:, None].to(kind), Q.conj().to(kind)], 1).mT
    right = torch.cat([B[:, None].to(kind), P.to(kind)], 1).mT
    k = ((left[:, None] * right).flatten(0, 1) @ R).unflatten(0, (1 + rank, 1 + rank))
    if rank == 0:
        return 2 * k[0, 0]
    if rank == 1:
        return 2 * (k[0, 0] - above * k[0, 1] * k[1, 0] / (1 + above * k[1, 1]))
    capacitance = torch.eye(rank, device=k.device) + (above * k[1:, 1:]).movedim(-1, 0)
    solved = torch.linalg.solve(capacitance, k[1:, 0].mT)  # (l, r)
    return 2 * (k[0, 0] - above * (k[0, 1:].mT * solved).sum(-1))


@implements("dplr_kernel_aliased", framework="torch", vjp=True, layout=LAYOUT)
def dplr_kernel_aliased(w, P, Q, B, C, dt, *, l):
    """Row by row, and one transform."""
    c, s = half_circle(l, real_type(w), w.device)
    below, above = 2 * s * torch.complex(s, c), 2 * c * torch.complex(c, -s)
    arguments = w, P, Q, B, C, dt
    k = torch.fft.ifft(by_rows(lambda *row: _spectrum(*row, below, above), *arguments))
    return k if any(a.is_complex() for a in arguments) else k.real
