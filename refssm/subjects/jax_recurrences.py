# pyright: reportMissingImports=false
"""Linear attention in chunks, Mamba-2's whole call, and the steps of both, in JAX.

One chunk after another by jax.lax.scan, in it the formulas: scores, the inverse of a triangular
matrix, products with the state. All heads of all sequences are one batch axis, as XLA's products on
a processor take few axes. No exponent is a difference of two sums. The last chunk is padded by
steps that keep the state.
"""

from functools import partial

import jax
import jax.numpy as jnp

from refssm.subjects.jax_scans import DECLARED, LONGEST, product
from refssm.testing import implements

LEAF = 4  # steps of a block whose keys are multiplied one by one, each with its own decays
HEADS, KEYS, GATES = "b g l n, b g l n, b g h l p", "b g h l n", "b g h l"
FOUND = "b g h l p"
TOKENS, STATE = "b g n, b g n, b g h p", "b g h n p"


def _decays(log_g):
    """e^{log_g_{j+1} + … + log_g_i}, 0 above the diagonal: (…, q, n) -> (…, i, j, n)."""
    lower = jnp.tril(jnp.ones((log_g.shape[-2],) * 2, bool))[..., None]
    strictly = jnp.tril(lower[..., 0], -1)[..., None]
    sums = jnp.cumsum(jnp.where(strictly, log_g[..., None, :], 0), axis=-3)
    return jnp.where(lower, jnp.exp(jnp.where(lower, sums, 0)), 0)


def since_start(log_g):
    """The decays from the start of a block to each of its steps."""
    return jnp.exp(jnp.cumsum(log_g, axis=-2))


def to_end_of(log_g):
    """The decays from each step of a block to its end."""
    later = jnp.pad(log_g[..., 1:, :], [*[(0, 0)] * (log_g.ndim - 2), (0, 1), (0, 0)])
    return jnp.exp(jnp.cumsum(later[..., ::-1, :], axis=-2)[..., ::-1, :])


def keyed_scores(rows, k, log_g):
    """Σ_n x_in k_jn e^{log_g_{j+1,n} + … + log_g_in}, i ≥ j, for each x of `rows`, by halves.

    For j in the first half and i in the second one the exponential is a product of two, from j to
    the middle and from the middle to i; none of them is above 1. All are (batch, q, n).
    """
    batch, q, n = k.shape
    if q <= LEAF:
        keys = _decays(log_g) * k[:, None]
        return [(x[:, :, None] * keys).sum(-1) for x in rows]

    def halves(a):
        return a.reshape(batch, 2, q // 2, n)

    in_halves = [a.reshape(2 * batch, q // 2, n) for a in (*rows, k, log_g)]
    inside = keyed_scores(in_halves[:-2], *in_halves[-2:])
    since = since_start(halves(log_g)[:, 1])
    keys = halves(k)[:, 0] * to_end_of(halves(log_g)[:, 0])
    scores = []
    for x, one in zip(rows, inside, strict=True):
        early, late = jnp.moveaxis(one.reshape(batch, 2, q // 2, q // 2), 1, 0)
        across = product("bin,bjn->bij", halves(x)[:, 1] * since, keys)
        scores.append(jnp.block([[early, jnp.zeros_like(across)], [across, late]]))
    return scores


def each_head(a, heads):
    """What a group of heads shares, for each of them: (groups · heads, …)."""
    return jnp.repeat(a, heads, axis=0) if heads > 1 else a


def _scores(rows, k, log_g):
    """For each x of `rows`: (groups, q, n) and gates (groups · heads, q, n or 1)."""
    heads = len(log_g) // len(k)
    if log_g.shape[-1] == 1:
        decays = _decays(log_g)[..., 0]
        return [each_head(product("gin,gjn->gij", x, k), heads) * decays for x in rows]
    return keyed_scores([each_head(x, heads) for x in rows], each_head(k, heads), log_g)


def inverse_of(L):
    """The inverse of 1 + L, where L is 0 on and above the diagonal: (batch, q, q).

    Two blocks of the diagonal become one of twice the size, in one batch of products for all of
    them. A batch of `solve_triangular` never ended in gradients on two cores: docs/findings.md.
    """
    batch, q, _ = L.shape
    size = 1 << (q - 1).bit_length()
    L = jnp.pad(L, [(0, 0), (0, size - q), (0, size - q)])
    X, half = jnp.ones((batch, size, 1, 1), L.dtype), 1
    while half < size:
        pairs = size // (2 * half)
        blocks = jnp.moveaxis(L.reshape(batch, pairs, 2, half, pairs, 2, half), 4, 2)
        below = blocks[:, jnp.arange(pairs), jnp.arange(pairs)][:, :, 1, :, 0]
        below = below.reshape(-1, half, half)
        early, late = (X[:, one::2].reshape(-1, half, half) for one in (0, 1))
        across = -product("bij,bjk->bik", late, product("bij,bjk->bik", below, early))
        X = jnp.block([[early, jnp.zeros_like(early)], [across, late]])
        half *= 2
        X = X.reshape(batch, pairs, half, half)
    return X.reshape(batch, size, size)[:, :q, :q]


def _chunk(S, given):
    """The state after a chunk and the chunk's outputs: (groups · heads, n, p), (…, q, p)."""
    q, k, v, log_g, *beta = given
    since, to_end, last = since_start(log_g), to_end_of(log_g), jnp.exp(log_g.sum(-2))[..., None]
    P, *A = _scores([q, k] if beta else [q], k, log_g)
    q, k = (each_head(a, len(v) // len(k)) for a in (q, k))
    for corrected, scores in zip(beta, A, strict=True):
        missing = corrected * (v - product("bin,bnp->bip", k * since, S))
        inverse = inverse_of(jnp.tril(corrected * scores, -1))
        v = product("bij,bjp->bip", inverse, missing)
    y = product("bin,bnp->bip", q * since, S) + product("bij,bjp->bip", P, v)
    return last * S + product("bjn,bjp->bnp", k * to_end, v), y


def pieces(a, count, chunk):
    """Chunks first, filled up with zeros: (chunks, count, chunk, …)."""
    a = jnp.pad(a.reshape(count, a.shape[-2], -1), [(0, 0), (0, -a.shape[-2] % chunk), (0, 0)])
    return jnp.moveaxis(a.reshape(count, -1, chunk, a.shape[-1]), 1, 0)


def _attention(q, k, v, log_g, *beta, chunk):
    """All outputs from a zero state; without `beta` nothing is corrected."""
    if chunk > LONGEST:
        raise NotImplementedError("chunks of more than 256 steps, each the square of its length")
    kind = jnp.result_type(q, k, v, log_g, *beta)
    (b, g, h, l, p), n = v.shape, k.shape[-1]
    if log_g.shape[-1] > 1:
        chunk = 1 << (chunk - 1).bit_length()  # it is halved again and again
    given = [pieces(a.astype(kind), b * g, chunk) for a in (q, k)]
    given += [pieces(a.astype(kind), b * g * h, chunk) for a in (v, log_g, *beta)]
    _, y = jax.lax.scan(jax.checkpoint(_chunk), jnp.zeros((b * g * h, n, p), kind), given)
    return jnp.moveaxis(y, 0, 1).reshape(b, g, h, -1, p)[..., :l, :]


@implements("gated_linear_recurrence_chunked", layout=f"{HEADS}, {KEYS} -> {FOUND}", **DECLARED)
@partial(jax.jit, static_argnames="chunk")
def gated_linear_recurrence_chunked(q, k, v, log_g, *, chunk):
    """A gate for each key, and no correction."""
    return _attention(q, k, v, log_g, chunk=chunk)


@implements("rwkv6_chunked", layout=f"{HEADS}, {KEYS}, g h n -> {FOUND}", **DECLARED)
@partial(jax.jit, static_argnames="chunk")
def rwkv6_chunked(r, k, v, log_w, u, *, chunk):
    """The same of receptances one step later, and what belongs to a step alone."""
    late = jnp.zeros_like(v)
    if r.shape[-2] > 1:
        late = _attention(r[..., 1:, :], *(a[..., :-1, :] for a in (k, v, log_w)), chunk=chunk)
        late = jnp.pad(late, [*[(0, 0)] * 3, (1, 0), (0, 0)])
    r, k = r[:, :, None], k[:, :, None]
    return late + (r * u[..., None, :] * k).sum(-1, keepdims=True) * v


@implements("delta_rule_chunked", layout=f"{HEADS}, {GATES} -> {FOUND}", **DECLARED)
@partial(jax.jit, static_argnames="chunk")
def delta_rule_chunked(q, k, v, beta, *, chunk):
    """No gate."""
    return _attention(q, k, v, jnp.zeros_like(beta)[..., None], beta[..., None], chunk=chunk)


@implements("gated_delta_rule_chunked", layout=f"{HEADS}, {GATES}, {GATES} -> {FOUND}", **DECLARED)
@partial(jax.jit, static_argnames="chunk")
def gated_delta_rule_chunked(q, k, v, log_g, beta, *, chunk):
    """One gate a head."""
    return _attention(q, k, v, log_g[..., None], beta[..., None], chunk=chunk)


@implements("kimi_delta_rule_chunked", layout=f"{HEADS}, {KEYS}, {GATES} -> {FOUND}", **DECLARED)
@partial(jax.jit, static_argnames="chunk")
def kimi_delta_rule_chunked(q, k, v, log_g, beta, *, chunk):
    """A gate for each key."""
    return _attention(q, k, v, log_g, beta[..., None], chunk=chunk)


def _step(q, k, v, log_g, beta, S):
    """A step of the delta rule after the gates: (b, g, h, n or 1), one β a head."""
    S = jnp.exp(log_g)[..., None] * S
    new = beta[..., None] * (v - product("bgn,bghnp->bghp", k, S))
    S = S + k[:, :, None, :, None] * new[..., None, :]
    return product("bgn,bghnp->bghp", q, S), S


@implements("gated_delta_step", layout=f"{TOKENS}, b g h, b g h, {STATE} -> b g h p, {STATE}",
            **DECLARED)  # fmt: skip
@jax.jit
def gated_delta_step(q, k, v, log_g, beta, S):
    """One gate a head."""
    return _step(q, k, v, log_g[..., None], beta, S)


@implements("kimi_delta_step", layout=f"{TOKENS}, b g h n, b g h, {STATE} -> b g h p, {STATE}",
            **DECLARED)  # fmt: skip
@jax.jit
def kimi_delta_step(q, k, v, log_g, beta, S):
    """A gate for each key."""
    return _step(q, k, v, log_g, beta, S)


@implements(
    "delta_dplr_step",
    layout=f"{TOKENS}, b g h n, b g h n, b g h n, {STATE} -> b g h p, {STATE}",
    **DECLARED,
)
@jax.jit
def delta_dplr_step(q, k, v, log_g, a, b, S):
    """What a reads is added along b."""
    q, k = q[:, :, None], k[:, :, None]
    z = (a[..., None, :] @ S)[..., 0, :]
    S = (
        jnp.exp(log_g)[..., None] * S
        + b[..., None] * z[..., None, :]
        + k[..., None] * v[..., None, :]
    )
    return (q[..., None, :] @ S)[..., 0, :], S


AROUND = "g h, b g l n, b g l n, g h, b g h l p, g h"


def _steps(dt, dt_bias, dt_min, dt_max):
    """Softplus, within its limits."""
    return jnp.clip(jax.nn.softplus(dt + dt_bias), dt_min, dt_max)


def _ssd_chunk(S, given):
    """The state after a chunk and the chunk's outputs: (groups · heads, p, n), (…, q, p)."""
    x, log_a, B, C = given
    heads, decays, since = len(x) // len(B), _decays(log_a)[..., 0], since_start(log_a)
    weights = each_head(product("gin,gjn->gij", C, B), heads) * decays
    B, C = (each_head(a, heads) for a in (B, C))
    y = product("bij,bjp->bip", weights, x) + since * product("bin,bpn->bip", C, S)
    ended = product("bjp,bjn->bpn", decays[:, -1, :, None] * x, B)
    return since[:, -1:] * S + ended, y


@implements("mamba2_scan", layout=f"b g h l p, b g h l, {AROUND} -> b g h l p", **DECLARED)
@partial(jax.jit, static_argnames=("dt_min", "dt_max"))
def mamba2_scan(x, dt, A, B, C, D, z, dt_bias, *, dt_min, dt_max):
    """Chunks of 64 steps as masked matrix products; the skip and the gate after them."""
    (b, g, h, l, p), n, chunk = x.shape, B.shape[-1], 64
    kind = jnp.result_type(x, dt, A, B, C, D, z, dt_bias)
    step = _steps(dt, dt_bias[..., None], dt_min, dt_max)[..., None]
    of_heads = step * x, step * A[..., None, None]
    given = [pieces(a.astype(kind), b * g * h, chunk) for a in of_heads]
    given += [pieces(a.astype(kind), b * g, chunk) for a in (B, C)]
    _, y = jax.lax.scan(jax.checkpoint(_ssd_chunk), jnp.zeros((b * g * h, p, n), kind), given)
    y = jnp.moveaxis(y, 0, 1).reshape(b, g, h, -1, p)[..., :l, :]
    return (y + D[..., None, None] * x) * jax.nn.silu(z)


@implements(
    "mamba2_step",
    layout="b g h p, b g h, g h, b g n, b g n, g h, b g h p, g h, b g h p n -> b g h p, b g h p n",
    **DECLARED,
)
@partial(jax.jit, static_argnames=("dt_min", "dt_max"))
def mamba2_step(x, dt, A, B, C, D, z, dt_bias, S, *, dt_min, dt_max):
    """One token."""
    step = _steps(dt, dt_bias, dt_min, dt_max)
    drive = (step[..., None] * x)[..., None] * B[:, :, None, None]
    S = jnp.exp(step * A)[..., None, None] * S + drive
    y = product("bghpn,bgn->bghp", S, C) + D[..., None] * x
    return y * jax.nn.silu(z), S
