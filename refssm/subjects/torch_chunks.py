# pyright: reportMissingImports=false
"""RWKV-7's rule and mLSTM in chunks, in PyTorch: the formulas, one chunk after another.

As in `torch_recurrences`: all heads are one batch axis, and no exponent is a difference of two
sums, but for mLSTM's m, which all that is weighed with it shares.
"""

import torch
from torch.linalg import solve_triangular
from torch.nn.functional import pad

from refssm.subjects.torch_recurrences import (
    FOUND,
    GATES,
    HEADS,
    KEYS,
    each_head,
    keyed_scores,
    kind_of,
    pieces,
    to_end_of,
)
from refssm.subjects.torch_scans import DECLARED, LONGEST
from refssm.testing import implements


def _down(x):
    """Each row one step later, and zeros first."""
    return pad(x[:, :-1], (0, 0, 1, 0))


def _dplr_chunk(S, q, k, v, log_g, a, b):
    """The state after a chunk and the chunk's outputs: (groups · heads, n, p), (…, q, p)."""
    q, k = (each_head(x, len(v) // len(k)) for x in (q, k))
    since, to_end = torch.exp(log_g.cumsum(1)), to_end_of(log_g)
    before = torch.cat([torch.ones_like(since[:, :1]), since[:, :-1]], 1)
    later = pad(a[:, 1:], (0, 0, 0, 1))  # a reads the state of the step before
    (of_k, a_k), (of_b, a_b) = (keyed_scores([q, later], x, log_g) for x in (k, b))
    read = (a * before) @ S + _down(a_k) @ v
    z = solve_triangular(-_down(a_b), read, upper=False, unitriangular=True)
    y = (q * since) @ S + of_k @ v + of_b @ z
    last = since[:, -1, :, None]
    return last * S + (k * to_end).mT @ v + (b * to_end).mT @ z, y


@implements("delta_dplr_chunked", layout=f"{HEADS}, {KEYS}, {KEYS}, {KEYS} -> {FOUND}", **DECLARED)
def delta_dplr_chunked(q, k, v, log_g, a, b, *, chunk):
    """What a reads is added along b."""
    if chunk > LONGEST:
        raise NotImplementedError("chunks of more than 256 steps, each the square of its length")
    kind, chunk = kind_of(q, k, v, log_g, a, b), 1 << (chunk - 1).bit_length()
    (n_b, g, h, l, p), n = v.shape, k.shape[-1]
    if not v.numel():
        return v.to(kind)
    given = [pieces(x.to(kind), n_b * g, chunk) for x in (q, k)]
    given += [pieces(x.to(kind), n_b * g * h, chunk) for x in (v, log_g, a, b)]
    S, y = torch.zeros(n_b * g * h, n, p, dtype=kind, device=v.device), []
    for piece in zip(*given, strict=True):
        S, more = _dplr_chunk(S, *piece)
        y.append(more)
    return torch.cat(y, 1)[:, :l].reshape(n_b, g, h, l, p)


def _mlstm_chunk(state, q, k, v, i, log_f):
    """The state (S beside s, m) after a chunk, and the chunk's outputs."""
    T, m = state
    heads = len(v) // len(k)
    log_f, i, size = log_f[..., 0], i[..., 0], i.shape[1]
    lower = torch.ones((size, size), dtype=torch.bool, device=v.device).tril()
    steps = log_f[:, :, None].expand(-1, -1, size).masked_fill(~lower.tril(-1), 0)
    D = (steps.cumsum(1) + i[:, None]).masked_fill(~lower, -torch.inf)
    carried = log_f.cumsum(1) + m[:, None]
    most = torch.maximum(carried, D.amax(2))
    weights = torch.exp(D - most[..., None]) * each_head(q @ k.mT, heads)
    q, k = (each_head(x, heads) for x in (q, k))
    new = torch.cat([v, torch.ones_like(v[..., :1])], -1)
    read = weights @ new + torch.exp(carried - most)[..., None] * (q @ T)
    y = read[..., :-1] / torch.maximum(read[..., -1:].abs(), torch.exp(-most)[..., None])
    last = most[:, -1]
    T = torch.exp(carried[:, -1] - last)[:, None, None] * T
    return (T + (k * torch.exp(D[:, -1] - last[:, None])[..., None]).mT @ new, last), y


@implements("mlstm_chunked", layout=f"{HEADS}, {GATES}, {GATES} -> {FOUND}", **DECLARED)
def mlstm_chunked(q, k, v, i, log_f, *, eps, chunk):
    """Exponential gates, in units of e^m."""
    if eps:
        raise NotImplementedError("no eps beside the denominator")
    if chunk > LONGEST:
        raise NotImplementedError("chunks of more than 256 steps, each the square of its length")
    kind, (n_b, g, h, l, p), n = kind_of(q, k, v, i, log_f), v.shape, k.shape[-1]
    if not v.numel():
        return v.to(kind)
    given = [pieces(x.to(kind), n_b * g, chunk) for x in (q, k)]
    given += [pieces(x.to(kind), n_b * g * h, chunk) for x in (v, i[..., None], log_f[..., None])]
    rest = torch.zeros(n_b * g * h, n, p + 1, dtype=kind, device=v.device)
    state, y = (rest, rest.new_zeros(n_b * g * h)), []
    for piece in zip(*given, strict=True):
        state, more = _mlstm_chunk(state, *piece)
        y.append(more)
    return torch.cat(y, 1)[:, :l].reshape(n_b, g, h, l, p)
