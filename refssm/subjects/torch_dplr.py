# pyright: reportMissingImports=false, reportCallIssue=false, reportAttributeAccessIssue=false
"""The DPLR kernel in PyTorch from powers of Ā: C Ā^{ab} times Ā^c B̄, heads times places in blocks.

It needs about 2 log₂ l products of matrices per system, no transform, and no poles.
"""

import torch

from refssm.testing import implements

LAYOUT = "d n, d n r, d n r, d n, d n, d -> d l"


def _bilinear(w, P, Q, B, dt):
    """I − Ā and B̄: (I − ½dt A)⁻¹ times −dt A and dt B."""
    A, dt = torch.diag_embed(w) - P @ Q.mH, dt[:, None, None]
    right = torch.cat([-dt * A, (dt * B[..., None]).expand(*A.shape[:-1], 1)], -1)
    one = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    solved = torch.linalg.solve(one - dt / 2 * A, right)
    return solved[..., :-1], solved[..., -1]


@implements("dplr_kernel", framework="torch", vjp=True, layout=LAYOUT)
def dplr_kernel(w, P, Q, B, C, dt, *, l):
    """By doubling in the form I − Ā^m, because products of Ā itself would lose slow modes."""
    rows = max(map(len, (w, P, Q, B, C, dt)))
    kind = sum(a.flatten()[:1].sum() for a in (w, P, Q, B, C, dt)).dtype
    w, P, Q, B, C = (a.to(kind).expand(rows, *a.shape[1:]) for a in (w, P, Q, B, C))
    E, places = _bilinear(w, P, Q, B, dt.expand(rows))
    places, heads, block = places[:, None], C[:, None], 1
    while block * block < l:  # E = I − Ā^block
        places = torch.cat([places, places - places @ E.mT], 1)
        E, block = 2 * E - E @ E, 2 * block
    while heads.shape[1] * block < l:
        heads = torch.cat([heads, heads - heads @ E], 1)
        E = 2 * E - E @ E
    return (heads @ places.mT).flatten(1)[:, :l]
