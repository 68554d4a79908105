# pyright: reportMissingImports=false
"""Mamba-2's scan in PyTorch: chunks as masked matrix products, and a loop over their states."""

import torch
from torch.nn.functional import pad

from refssm.testing import implements

LONGEST = 256  # longest chunk, as in Mamba-2's configurations: it needs the square for each head
LAYOUT = "b l g h p, b l g h, b l g n, b l g n -> b l g h p"


def _decays(log_a):
    """e^{log_a_{j+1} + … + log_a_i}, 0 above the diagonal: (…, q) -> (…, i, j)."""
    lower = torch.ones((log_a.shape[-1],) * 2, dtype=torch.bool, device=log_a.device).tril()
    steps = log_a[..., None].masked_fill(~lower.tril(-1), 0)
    return torch.exp(steps.cumsum(-2)).masked_fill(~lower, 0)


def _after(S, inputs):
    """The state after a chunk and the chunk's outputs: (b, g, h p, n), (b, g, h p, q)."""
    x, log_a, B, C = inputs  # (b, g, h, q, p), (b, g, h, q), (b, g, q, n) twice
    h, p = x.shape[2], x.shape[-1]
    decays, since_start = _decays(log_a), torch.exp(log_a.cumsum(-1))
    y = ((C @ B.mT)[:, :, None] * decays) @ x
    carried = (S @ C.mT).unflatten(2, (h, p)).mT  # (b, g, h, q, p)
    y = y + since_start[..., None] * carried
    drives = (x * decays[..., -1, :, None]).mT.flatten(2, 3)  # (b, g, h p, q)
    kept = since_start[..., -1, None].expand(*x.shape[:3], p).flatten(2, 3)[..., None]
    return kept * S + drives @ B, y


@implements("ssd_chunked", framework="torch", vjp=True, layout=LAYOUT)
def ssd_chunked(x, log_a, B, C, *, chunk):
    """From a zero state; the last chunk is padded with zeros, which keep the state."""
    if chunk > LONGEST:
        raise NotImplementedError("chunks of more than 256 steps, each the square of its length")
    (b, l, g, h, p), where = x.shape, x.device
    if l == 0:
        return x
    kind = (x.flatten()[:1] * log_a.flatten()[:1] * B.flatten()[:1] * C.flatten()[:1]).dtype
    x, log_a = (a.movedim(1, 3) for a in (x, log_a))  # (b, g, h, l, …)
    B, C = (a.movedim(1, 2) for a in (B, C))
    x, B, C = (pad(a.to(kind), (0, 0, 0, -l % chunk)).split(chunk, -2) for a in (x, B, C))
    log_a = pad(log_a.to(kind), (0, -l % chunk)).split(chunk, -1)
    S, y = torch.zeros(b, g, h * p, B[0].shape[-1], dtype=kind, device=where), []
    for inputs in zip(x, log_a, B, C, strict=True):
        S, more = _after(S, inputs)
        y.append(more)
    return torch.cat(y, -2)[..., :l, :].movedim(3, 1)
