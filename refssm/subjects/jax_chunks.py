# pyright: reportMissingImports=false
"""RWKV-7's rule and mLSTM in chunks, in JAX: the formulas, one chunk after another.

As in `jax_recurrences`: all heads are one batch axis, and no exponent is a difference of two sums,
but for mLSTM's m, which all that is weighed with it shares.
"""

from functools import partial

import jax
import jax.numpy as jnp

from refssm.subjects.jax_recurrences import (
    FOUND,
    GATES,
    HEADS,
    KEYS,
    each_head,
    inverse_of,
    keyed_scores,
    pieces,
    since_start,
    to_end_of,
)
from refssm.subjects.jax_scans import DECLARED, LONGEST, product
from refssm.testing import implements


def _down(x):
    """Each row one step later, and zeros first."""
    return jnp.pad(x[:, :-1], [(0, 0), (1, 0), (0, 0)])


def _dplr_chunk(S, given):
    """The state after a chunk and the chunk's outputs: (groups · heads, n, p), (…, q, p)."""
    q, k, v, log_g, a, b = given
    q, k = (each_head(x, len(v) // len(k)) for x in (q, k))
    since, to_end = since_start(log_g), to_end_of(log_g)
    before = jnp.concatenate([jnp.ones_like(since[:, :1]), since[:, :-1]], 1)
    later = jnp.pad(a[:, 1:], [(0, 0), (0, 1), (0, 0)])  # a reads the state of the step before
    (of_k, a_k), (of_b, a_b) = (keyed_scores([q, later], x, log_g) for x in (k, b))
    read = product("bin,bnp->bip", a * before, S) + product("bij,bjp->bip", _down(a_k), v)
    z = product("bij,bjp->bip", inverse_of(-_down(a_b)), read)
    y = product("bin,bnp->bip", q * since, S)
    y = y + product("bij,bjp->bip", of_k, v) + product("bij,bjp->bip", of_b, z)
    S = since[:, -1, :, None] * S + product("bjn,bjp->bnp", k * to_end, v)
    return S + product("bjn,bjp->bnp", b * to_end, z), y


def _scanned(chunk_of, start, shared, own, kind, chunk):
    """All outputs of a loop over chunks; `own` belongs to single heads, its first one is v."""
    if chunk > LONGEST:
        raise NotImplementedError("chunks of more than 256 steps, each the square of its length")
    n_b, g, h, l, p = own[0].shape
    given = [pieces(x.astype(kind), n_b * g, chunk) for x in shared]
    given += [pieces(x.astype(kind), n_b * g * h, chunk) for x in own]
    _, y = jax.lax.scan(jax.checkpoint(chunk_of), start, given)
    return jnp.moveaxis(y, 0, 1).reshape(n_b, g, h, -1, p)[..., :l, :]


@implements("delta_dplr_chunked", layout=f"{HEADS}, {KEYS}, {KEYS}, {KEYS} -> {FOUND}", **DECLARED)
@partial(jax.jit, static_argnames="chunk")
def delta_dplr_chunked(q, k, v, log_g, a, b, *, chunk):
    """What a reads is added along b."""
    kind, chunk = jnp.result_type(q, k, v, log_g, a, b), 1 << (chunk - 1).bit_length()
    n_b, g, h, _, p = v.shape
    S = jnp.zeros((n_b * g * h, k.shape[-1], p), kind)
    return _scanned(_dplr_chunk, S, (q, k), (v, log_g, a, b), kind, chunk)


def _mlstm_chunk(state, given):
    """The state (S beside s, m) after a chunk, and the chunk's outputs."""
    (T, m), (q, k, v, i, log_f) = state, given
    heads, log_f, i, size = len(v) // len(k), log_f[..., 0], i[..., 0], i.shape[1]
    lower = jnp.tril(jnp.ones((size, size), bool))
    sums = jnp.cumsum(jnp.where(jnp.tril(lower, -1), log_f[:, :, None], 0), axis=1)
    D = jnp.where(lower, sums + i[:, None], -jnp.inf)
    carried = jnp.cumsum(log_f, axis=1) + m[:, None]
    most = jnp.maximum(carried, D.max(2))
    weights = jnp.exp(D - most[..., None]) * each_head(product("bin,bjn->bij", q, k), heads)
    q, k = (each_head(x, heads) for x in (q, k))
    new = jnp.concatenate([v, jnp.ones_like(v[..., :1])], -1)
    read = jnp.exp(carried - most)[..., None] * product("bin,bnp->bip", q, T)
    read = read + product("bij,bjp->bip", weights, new)
    y = read[..., :-1] / jnp.maximum(jnp.abs(read[..., -1:]), jnp.exp(-most)[..., None])
    last = most[:, -1]
    T = jnp.exp(carried[:, -1] - last)[:, None, None] * T
    weighed = k * jnp.exp(D[:, -1] - last[:, None])[..., None]
    return (T + product("bjn,bjp->bnp", weighed, new), last), y


@implements("mlstm_chunked", layout=f"{HEADS}, {GATES}, {GATES} -> {FOUND}", **DECLARED)
@partial(jax.jit, static_argnames=("eps", "chunk"))
def mlstm_chunked(q, k, v, i, log_f, *, eps, chunk):
    """Exponential gates, in units of e^m."""
    if eps:
        raise NotImplementedError("no eps beside the denominator")
    kind, (n_b, g, h, _, p) = jnp.result_type(q, k, v, i, log_f), v.shape
    start = jnp.zeros((n_b * g * h, k.shape[-1], p + 1), kind), jnp.zeros(n_b * g * h, kind)
    own = v, i[..., None], log_f[..., None]
    return _scanned(_mlstm_chunk, start, (q, k), own, kind, chunk)
