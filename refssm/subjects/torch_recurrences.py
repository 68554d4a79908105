# pyright: reportMissingImports=false
"""Linear attention in chunks, Mamba-2's whole call, and the steps of both, in PyTorch.

A loop over chunks, in it the formulas: scores, a triangular system, products with the state. All
heads of all sequences are one batch axis. No exponent is a difference of two sums. The last chunk
is padded by steps that keep the state.
"""

import torch
from torch.linalg import solve_triangular
from torch.nn.functional import logsigmoid, pad, silu

from refssm.subjects.torch_scans import DECLARED, LONGEST
from refssm.testing import implements

LEAF = 2  # steps of a block whose keys are multiplied one by one, each with its own decays
HEADS, KEYS, GATES = "b g l n, b g l n, b g h l p", "b g h l n", "b g h l"
FOUND = "b g h l p"
TOKENS, STATE = "b g n, b g n, b g h p", "b g h n p"


def kind_of(*arrays):
    """The type of a product of all of them."""
    kinds = iter(a.dtype for a in arrays)
    kind = next(kinds)
    for other in kinds:
        kind = torch.promote_types(kind, other)
    return kind


def _decays(log_g):
    """e^{log_g_{j+1} + … + log_g_i}, 0 above the diagonal: (…, q, n) -> (…, i, j, n)."""
    lower = torch.ones((log_g.shape[-2],) * 2, dtype=torch.bool, device=log_g.device).tril()
    sums = log_g[..., None, :].masked_fill(~lower.tril(-1)[..., None], 0).cumsum(-3)
    return torch.exp(sums).masked_fill(~lower[..., None], 0)


def to_end_of(log_g):
    """The decays from each step of a block to its end."""
    later = pad(log_g[..., 1:, :], (0, 0, 0, 1))
    return torch.exp(later.flip(-2).cumsum(-2).flip(-2))


def keyed_scores(rows, k, log_g):
    """Σ_n x_in k_jn e^{log_g_{j+1,n} + … + log_g_in}, i ≥ j, for each x of `rows`, by halves.

    For j in the first half and i in the second one the exponential is a product of two, from j to
    the middle and from the middle to i; none of them is above 1. All are (batch, q, n).
    """
    q = k.shape[1]
    if q <= LEAF:
        keys = _decays(log_g) * k[:, None]
        return [torch.einsum("bin,bijn->bij", x, keys) for x in rows]
    halves = [a.unflatten(1, (2, q // 2)) for a in (*rows, k, log_g)]
    inside = keyed_scores(*_split(a.flatten(0, 1) for a in halves))
    (*late, _, gates), (*_, keys, before) = ([a[:, i] for a in halves] for i in (1, 0))
    since, keys = torch.exp(gates.cumsum(1)), (keys * to_end_of(before)).mT
    scores = []
    for x, one in zip(late, inside, strict=True):
        above, below = one.unflatten(0, (-1, 2)).unbind(1)
        across = torch.cat([(x * since) @ keys, below], -1)
        scores.append(torch.cat([pad(above, (0, q // 2)), across], 1))
    return scores


def _split(arrays):
    *rows, k, log_g = arrays
    return rows, k, log_g


def each_head(a, heads):
    """What a group of heads shares, for each of them: (groups · heads, …)."""
    return a.repeat_interleave(heads, 0) if heads > 1 else a


def _scores(rows, k, log_g):
    """For each x of `rows`: (groups, q, n) and gates (groups · heads, q, n or 1)."""
    heads = len(log_g) // len(k)
    if log_g.shape[-1] == 1:
        decays = _decays(log_g)[..., 0]
        return [each_head(x @ k.mT, heads) * decays for x in rows]
    q, given = k.shape[1], [*(each_head(x, heads) for x in (*rows, k)), log_g]
    whole = 1 << (q - 1).bit_length()  # steps that are halved again and again
    *rows, k, log_g = (pad(a, (0, 0, 0, whole - q)) for a in given)
    return [scores[:, :q, :q] for scores in keyed_scores(rows, k, log_g)]


def _chunk(S, q, k, v, log_g, *beta):
    """The state after a chunk and the chunk's outputs: (groups · heads, n, p), (…, q, p)."""
    since, last = torch.exp(log_g.cumsum(1)), torch.exp(log_g.sum(1))[..., None]
    P, *A = _scores([q, k] if beta else [q], k, log_g)
    q, k = (each_head(a, len(v) // len(k)) for a in (q, k))
    for corrected, scores in zip(beta, A, strict=True):
        missing = corrected * (v - (k * since) @ S)
        v = solve_triangular(
            (corrected * scores).tril(-1), missing, upper=False, unitriangular=True
        )
    y = torch.baddbmm(P @ v, q * since, S)
    return torch.baddbmm(last * S, (k * to_end_of(log_g)).mT, v), y


def pieces(a, count, chunk):
    """Chunks of (count, chunk, …), the last one filled up with zeros."""
    a = a.reshape(count, a.shape[-2], -1)
    return pad(a, (0, 0, 0, -a.shape[1] % chunk)).split(chunk, 1)


def _attention(q, k, v, log_g, *beta, chunk):
    """All outputs from a zero state; without `beta` nothing is corrected."""
    if chunk > LONGEST:
        raise NotImplementedError("chunks of more than 256 steps, each the square of its length")
    kind = kind_of(q, k, v, log_g, *beta)
    (b, g, h, l, p), n = v.shape, k.shape[-1]
    if not v.numel():
        return v.to(kind)
    given = [pieces(a.to(kind), b * g, chunk) for a in (q, k)]
    given += [pieces(a.to(kind), b * g * h, chunk) for a in (v, log_g, *beta)]
    S, y = torch.zeros(b * g * h, n, p, dtype=kind, device=v.device), []
    for piece in zip(*given, strict=True):
        S, more = _chunk(S, *piece)
        y.append(more)
    return torch.cat(y, 1)[:, :l].reshape(b, g, h, l, p)


@implements("gated_linear_recurrence_chunked", layout=f"{HEADS}, {KEYS} -> {FOUND}", **DECLARED)
def gated_linear_recurrence_chunked(q, k, v, log_g, *, chunk):
    """A gate for each key, and no correction."""
    return _attention(q, k, v, log_g, chunk=chunk)


@implements("rwkv6_chunked", layout=f"{HEADS}, {KEYS}, g h n -> {FOUND}", **DECLARED)
def rwkv6_chunked(r, k, v, log_w, u, *, chunk):
    """The same of receptances one step later, and what belongs to a step alone."""
    late = pad(_attention(r[..., 1:, :], *(a[..., :-1, :] for a in (k, v, log_w)), chunk=chunk),
               (0, 0, min(r.shape[-2], 1), 0))  # fmt: skip
    r, k = r[:, :, None], k[:, :, None]
    return late + (r * u[..., None, :] * k).sum(-1, keepdim=True) * v


@implements("delta_rule_chunked", layout=f"{HEADS}, {GATES} -> {FOUND}", **DECLARED)
def delta_rule_chunked(q, k, v, beta, *, chunk):
    """No gate."""
    beta = beta[..., None]
    return _attention(q, k, v, torch.zeros_like(beta), beta, chunk=chunk)


@implements("gated_delta_rule_chunked", layout=f"{HEADS}, {GATES}, {GATES} -> {FOUND}", **DECLARED)
def gated_delta_rule_chunked(q, k, v, log_g, beta, *, chunk):
    """One gate a head."""
    return _attention(q, k, v, log_g[..., None], beta[..., None], chunk=chunk)


@implements("kimi_delta_rule_chunked", layout=f"{HEADS}, {KEYS}, {GATES} -> {FOUND}", **DECLARED)
def kimi_delta_rule_chunked(q, k, v, log_g, beta, *, chunk):
    """A gate for each key."""
    return _attention(q, k, v, log_g, beta[..., None], chunk=chunk)


def _step(q, k, v, log_g, beta, S):
    """A step of the delta rule after the gates: (b, g, h, n or 1), one β a head."""
    S = torch.exp(log_g)[..., None] * S
    q, k = q[:, :, None, None], k[:, :, None, None]
    new = beta[..., None] * (v - (k @ S)[..., 0, :])
    S = S + k.mT * new[..., None, :]
    return (q @ S)[..., 0, :], S


@implements("gated_delta_step", layout=f"{TOKENS}, b g h, b g h, {STATE} -> b g h p, {STATE}",
            **DECLARED)  # fmt: skip
def gated_delta_step(q, k, v, log_g, beta, S):
    """One gate a head."""
    return _step(q, k, v, log_g[..., None], beta, S)


@implements("kimi_delta_step", layout=f"{TOKENS}, b g h n, b g h, {STATE} -> b g h p, {STATE}",
            **DECLARED)  # fmt: skip
def kimi_delta_step(q, k, v, log_g, beta, S):
    """A gate for each key."""
    return _step(q, k, v, log_g, beta, S)


@implements(
    "delta_dplr_step",
    layout=f"{TOKENS}, b g h n, b g h n, b g h n, {STATE} -> b g h p, {STATE}",
    **DECLARED,
)
def delta_dplr_step(q, k, v, log_g, a, b, S):
    """What a reads is added along b."""
    q, k = q[:, :, None], k[:, :, None]
    z = (a[..., None, :] @ S)[..., 0, :]
    S = (
        torch.exp(log_g)[..., None] * S
        + b[..., None] * z[..., None, :]
        + k[..., None] * v[..., None, :]
    )
    return (q[..., None, :] @ S)[..., 0, :], S


AROUND = "g h, b g l n, b g l n, g h, b g h l p, g h"


def _steps(dt, dt_bias, dt_min, dt_max):
    """Softplus, within its limits. PyTorch's own is linear above 20, where e^−20 is 2e-9: too much
    in double precision."""
    return (-logsigmoid(-(dt + dt_bias))).clamp(dt_min, dt_max)


def _ssd_chunk(S, x, log_a, B, C):
    """The state after a chunk and the chunk's outputs: (groups · heads, p, n), (…, q, p)."""
    heads, decays, since = len(x) // len(B), _decays(log_a)[..., 0], torch.exp(log_a.cumsum(1))
    weights = each_head(C @ B.mT, heads) * decays
    B, C = (each_head(a, heads) for a in (B, C))
    y = torch.baddbmm(since * (C @ S.mT), weights, x)
    return torch.baddbmm(since[:, -1:] * S, (decays[:, -1, :, None] * x).mT, B), y


@implements("mamba2_scan", layout=f"b g h l p, b g h l, {AROUND} -> b g h l p", **DECLARED)
def mamba2_scan(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """Chunks of 64 steps as masked matrix products; the skip and the gate after them."""
    (b, g, h, l, p), n, chunk = x.shape, B.shape[-1], 64
    kind = kind_of(x, dt, A, B, C, D, z, dt_bias)
    x = x.to(kind)
    step = _steps(dt.to(kind), dt_bias[..., None], dt_min, dt_max)[..., None]
    if not x.numel():
        return x
    given = [pieces(a, b * g * h, chunk) for a in (step * x, step * A[..., None, None])]
    given += [pieces(a.to(kind), b * g, chunk) for a in (B, C)]
    S, y = torch.zeros(b * g * h, p, n, dtype=kind, device=x.device), []
    for piece in zip(*given, strict=True):
        S, more = _ssd_chunk(S, *piece)
        y.append(more)
    s = torch.cat(y, 1)[:, :l].reshape(b, g, h, l, p)
    return (s + D[..., None, None] * x) * silu(z)


@implements(
    "mamba2_step",
    layout="b g h p, b g h, g h, b g n, b g n, g h, b g h p, g h, b g h p n -> b g h p, b g h p n",
    **DECLARED,
)
def mamba2_step(x, dt, A, B, C, D, z, dt_bias, S, *, dt_min, dt_max):
    """One token."""
    step = _steps(dt, dt_bias, dt_min, dt_max)
    drive = (step[..., None] * x)[..., None] * B[:, :, None, None]
    S = torch.exp(step * A)[..., None, None] * S + drive
    y = (S @ C[:, :, None, :, None])[..., 0] + D[..., None] * x
    return y * silu(z), S
