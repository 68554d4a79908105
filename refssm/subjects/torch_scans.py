# pyright: reportMissingImports=false
"""Recurrences and convolutions in PyTorch."""

import torch
from torch.nn.functional import conv1d, pad, silu, softplus
from torch.utils.checkpoint import checkpoint

from refssm.testing import implements

DECLARED = {"framework": "torch", "vjp": True}


def _looped(a, b, x):
    states = []
    # not a[..., k, :]: the gradient of each slice is an array of all steps, so time grows as l²
    for a_k, b_k in zip(a.unbind(-2), b.unbind(-2), strict=True):
        x = a_k * x + b_k
        states.append(x)
    return torch.stack(states, -2)


@implements("linear_scan", **DECLARED)
def loop(a, b):
    """A loop over time, the most common way to write a scan, from a zero state."""
    return _looped(a, b, torch.zeros_like(b[..., 0, :], dtype=torch.result_type(a, b)))


@implements("linear_scan_from", **DECLARED)
def loop_from(a, b, x0):
    """The loop from x0."""
    return _looped(a, b, x0.to(torch.result_type(a, x0)))


BLOCK = 64  # steps of Mamba's scan
SCANNED = "b d l, b d l, d n, b n l, b n l"


def _block(x, u, dt, A, B, C):
    """The state after a block of steps, and its outputs; time is the first axis, d the last."""
    decays, drives = torch.exp(dt[:, None] * A), (dt * u)[:, None] * B
    states = []
    for decay, drive in zip(decays.unbind(), drives.unbind(), strict=True):
        x = decay * x + drive
        states.append(x)
    return x, (torch.stack(states) * C).sum(1)


def _scanned(u, dt, A, B, C):
    """A loop over time by blocks of steps, which the gradient computes again.

    Exponentials of a block are one large operation; only the recurrence itself goes step by step.
    """
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


LONGEST = 256  # longest chunk, as in Mamba-2's configurations: it needs the square for each head
HEADS = "b l g h p, b l g h, b l g n, b l g n -> b l g h p"


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


@implements("ssd_chunked", layout=HEADS, **DECLARED)
def ssd_chunked(x, log_a, B, C, *, chunk):
    """Chunks as masked matrix products, and a loop over their states, from a zero state.

    The last chunk is padded with zeros, which keep the state.
    """
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


@implements("causal_convolution", **DECLARED)
def causal_convolution(u, k):
    """torch.fft.rfft of twice the length if both arguments are real, fft if one is complex."""
    l = u.shape[-1]
    if u.is_complex() or k.is_complex():
        return torch.fft.ifft(torch.fft.fft(u, 2 * l) * torch.fft.fft(k, 2 * l))[..., :l]
    return torch.fft.irfft(torch.fft.rfft(u, 2 * l) * torch.fft.rfft(k, 2 * l), 2 * l)[..., :l]


@implements("short_convolution", layout="b d l, d t -> b d l", **DECLARED)
def short_convolution(u, k):
    """conv1d with one group per channel, a correlation: its weights are the taps reversed."""
    (d, t), l, kind = k.shape, u.shape[-1], torch.result_type(u, k)
    if t == 0 or u.shape[1] != d:
        raise NotImplementedError("no taps, or channels that share an input")
    weights = k.flip(-1)[:, None].to(kind)
    return conv1d(u.to(kind), weights, padding=t - 1, groups=d)[..., :l]
