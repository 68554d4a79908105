"""Mirrors of the stages of a chunk in plain array code: masked matrix products, gates as rows.

G has an axis of keys of length 1, or of length n where each key has a gate; then the pairs of two
neighbouring blocks of 1, 2, 4, … steps are one product, of rows that decay since the border and of
columns that decay up to it. No exponent is above 0, so no exponential overflows.
"""

from typing import NamedTuple

from refssm.linear_attention.stages import (
    CHUNK_GATES,
    CHUNK_INVERSE,
    CHUNK_OUTPUTS,
    CHUNK_PRODUCTS,
    CHUNK_STATES,
    CHUNK_WRITES,
)
from refssm.linear_attention.stages_keyed import (
    CHUNK_OUTPUTS_KEYED,
    CHUNK_PRODUCTS_KEYED,
    CHUNK_STATES_KEYED,
    CHUNK_WRITES_KEYED,
)
from refssm_gpu._algebra.parts import along, batch_of
from refssm_gpu._launching.arrays import Array, namespace, transposed, unbroadcast, unbroadcast_each
from refssm_gpu._launching.checked import mirror


@mirror(CHUNK_GATES)
def chunk_gates(log_g):
    return _sums(log_g)


@mirror(CHUNK_GATES)
def chunk_gates_vjp(dg, log_g):
    xp = namespace(dg)
    wide = xp.flip(xp.astype(dg, xp.result_type(dg, log_g), copy=False), axis=-1)
    return (unbroadcast(xp.flip(_sums(wide), axis=-1), log_g),)


def _sums(x: Array) -> Array:
    """Sums from the first entry on, by doubling."""
    xp, span = namespace(x), 1
    x = x + 0
    while span < x.shape[-1]:
        x = xp.concat([x[..., :span], x[..., span:] + x[..., :-span]], axis=-1)
        span *= 2
    return x


def _decays(g: Array) -> Array:
    """e^{G_i − G_j} for i ≥ j, else 0."""
    xp = namespace(g)
    spans = xp.tril(g[..., :, None] - g[..., None, :])
    return xp.tril(xp.exp(spans))


@mirror(CHUNK_PRODUCTS)
def chunk_products(k, g, beta):
    xp = namespace(k)
    return xp.tril(beta[..., :, None] * (k @ transposed(k) * _decays(g)), k=-1)


@mirror(CHUNK_PRODUCTS)
def chunk_products_vjp(dL, k, g, beta):
    xp = namespace(k)
    E, dL = _decays(g), xp.tril(dL, k=-1)
    through = dL * (k @ transposed(k) * E)
    D = beta[..., :, None] * (E * dL)
    dk = D @ k + transposed(D) @ k
    dg = _of_later_and_earlier(beta[..., :, None] * through)
    return unbroadcast_each((dk, dg, xp.sum(through, axis=-1)), (k, g, beta))


def _of_later_and_earlier(T: Array) -> Array:
    """The cotangent of G from that of the exponents G_i − G_j."""
    xp = namespace(T)
    return xp.sum(T, axis=-1) - xp.sum(T, axis=-2)


@mirror(CHUNK_INVERSE)
def chunk_inverse(L):
    return _inverse(L)


@mirror(CHUNK_INVERSE)
def chunk_inverse_vjp(dX, L):
    turned = transposed(_inverse(L))
    return (unbroadcast(-namespace(L).tril(turned @ dX @ turned, k=-1), L),)


def _inverse(L: Array) -> Array:
    """Blocks of 1, 2, 4, … steps: X ← X − X M X, with M what L has between two neighbours."""
    xp, l = namespace(L), L.shape[-1]
    X = xp.broadcast_to(xp.eye(l, dtype=L.dtype), L.shape) + 0
    for level in _levels(l, L):
        X = X - X @ (xp.where(level.pairs, L, 0.0) @ X)
    return X


class _Level(NamedTuple):
    """Pairs of neighbouring blocks of one length, with what is late and early in each pair."""

    border: Array  # (l): the first step of the later block
    late: Array  # (l, 1)
    early: Array  # (l, 1)
    pairs: Array  # (l, l): a late step and an early one of the same pair of blocks


def _levels(l: int, like: Array) -> list[_Level]:
    """Blocks of 1, 2, 4, … steps: every two steps are a pair at one level."""
    xp, size, found = namespace(like), 1, []
    step = xp.arange(l)
    while size < l:
        both, late = step // (2 * size), step // size % 2 == 1
        same = both[:, None] == both[None, :]
        border = xp.minimum(both * (2 * size) + size, xp.full_like(step, l - 1))
        pairs = same & late[:, None] & ~late[None, :]
        found.append(_Level(border, late[:, None], ~late[:, None], pairs))
        size *= 2
    return found


@mirror(CHUNK_WRITES)
def chunk_writes(k, v, g, beta, X):
    return _writes(namespace(g).exp(g)[..., None], k, v, beta, X)


@mirror(CHUNK_WRITES)
def chunk_writes_vjp(dW, dU, k, v, g, beta, X):
    E = namespace(g).exp(g)[..., None]
    dk, dv, dg, dbeta, dX = _writes_back(dW, dU, E, k, v, beta, X)
    return unbroadcast_each((dk, dv, namespace(g).sum(dg, axis=-1), dbeta, dX), (k, v, g, beta, X))


def _writes(E: Array, k: Array, v: Array, beta: Array, X: Array):
    """W and U for E = e^G with an axis of keys."""
    X, rate = namespace(X).tril(X), beta[..., None]
    both = X @ (rate * (E * k)), X @ (rate * v)
    batch = batch_of(both, (2, 2))
    return tuple(along(x, batch, 2) for x in both)


def _writes_back(dW: Array, dU: Array, E: Array, k: Array, v: Array, beta: Array, X: Array):
    """The cotangents of k, v, G of each key, β and X."""
    xp, rate, decayed = namespace(X), beta[..., None], E * k
    X = transposed(xp.tril(X))
    dC, dB = X @ dW, X @ dU
    dX = xp.tril(dW @ transposed(rate * decayed) + dU @ transposed(rate * v))
    through = dC * decayed
    dbeta = xp.sum(through, axis=-1) + xp.sum(dB * v, axis=-1)
    return rate * (E * dC), rate * dB, rate * through, dbeta, dX


@mirror(CHUNK_STATES)
def chunk_states(k, w, u, g, S):
    return _states(k, w, u, g[..., None], S)


@mirror(CHUNK_STATES)
def chunk_states_vjp(dstates, dnew, dlast, k, w, u, g, S):
    dk, dw, du, dg, dS = _states_back(dstates, dnew, dlast, k, w, u, g[..., None], S)
    return unbroadcast_each((dk, dw, du, namespace(g).sum(dg, axis=-1), dS), (k, w, u, g, S))


def _to_end(g: Array) -> tuple[Array, Array]:
    """e^{G_end} as (…, n, 1) and e^{G_end − G} as (…, l, n)."""
    xp = namespace(g)
    none = xp.zeros((*g.shape[:-2], 1, g.shape[-1]), dtype=g.dtype)
    end = g[..., -1:, :] if g.shape[-2] else none
    return transposed(xp.exp(end)), xp.exp(end - g)


def _states(k: Array, w: Array, u: Array, g: Array, S: Array):
    """The states before the chunks, the new values, and the last state."""
    xp, (m, l, n), p = namespace(S), k.shape[-3:], u.shape[-1]
    batch = batch_of((k, w, u, g, S), (3, 3, 3, 3, 2))
    S, before, new = along(S, batch, 2) + 0, [], []
    for c in range(m):
        whole, to_end = _to_end(g[..., c, :, :])
        before.append(S)
        new.append(u[..., c, :, :] - w[..., c, :, :] @ S)
        S = whole * S + transposed(to_end * k[..., c, :, :]) @ new[-1]
    if not m:
        none = (xp.zeros((*batch, 0, size, p), dtype=S.dtype) for size in (n, l))
        return (*none, S)
    return xp.stack(before, axis=-3), xp.stack(new, axis=-3), S


def _states_back(dstates: Array, dnew: Array, dS: Array, k: Array, w: Array, u: Array, g: Array, S):
    """The cotangents of k, w, u, G of each key, and S."""
    xp = namespace(S)
    states, new, _ = _states(k, w, u, g, S)
    found = []
    for c in range(k.shape[-3] - 1, -1, -1):
        whole, to_end = _to_end(g[..., c, :, :])
        kept, decayed = states[..., c, :, :], to_end * k[..., c, :, :]
        dv = dnew[..., c, :, :] + decayed @ dS
        of_keys = new[..., c, :, :] @ transposed(dS)
        earlier = (decayed * of_keys)[..., :-1, :]
        carried = transposed(whole * xp.sum(kept * dS, axis=-1, keepdims=True))
        ended = carried + xp.sum(earlier, axis=-2, keepdims=True)
        dg = xp.concat([-earlier, ended], axis=-2)[..., : k.shape[-2], :]
        found.append((to_end * of_keys, -(dv @ transposed(kept)), dv, dg))
        dS = whole * dS - transposed(w[..., c, :, :]) @ dv + dstates[..., c, :, :]
    if not found:
        return (*(xp.zeros_like(x) for x in (k, w, u, g)), dS)
    return *(xp.stack(parts[::-1], axis=-3) for parts in zip(*found, strict=True)), dS


@mirror(CHUNK_OUTPUTS)
def chunk_outputs(q, k, v, g, S):
    xp = namespace(g)
    P = xp.tril(q @ transposed(k) * _decays(g))
    return (xp.exp(g)[..., None] * q) @ S + P @ v


@mirror(CHUNK_OUTPUTS)
def chunk_outputs_vjp(dy, q, k, v, g, S):
    xp = namespace(g)
    E, decays, scores = xp.exp(g)[..., None], _decays(g), q @ transposed(k)
    D = xp.tril(decays * (dy @ transposed(v)))
    read = E * (dy @ transposed(S))
    dq, dk, dv = D @ k + read, transposed(D) @ q, transposed(xp.tril(scores * decays)) @ dy
    dg = _of_later_and_earlier(xp.tril(scores * D, k=-1)) + xp.sum(q * read, axis=-1)
    return unbroadcast_each((dq, dk, dv, dg, transposed(E * q) @ dy), (q, k, v, g, S))


def _decayed(x: Array, g: Array, level: _Level, late: bool) -> tuple[Array, Array]:
    """Decays since the border, or up to it, and rows times them; 0 for the other steps."""
    xp = namespace(g)
    border = xp.take(g, level.border, axis=-2)
    seen, span = (level.late, g - border) if late else (level.early, border - g)
    decays = xp.where(seen, xp.exp(xp.where(seen, span, 0.0)), 0.0)
    return decays, decays * x


def _paired(q: Array, k: Array, g: Array) -> Array:
    """Σ_n q_in k_jn e^{G_in − G_jn} for i ≥ j, else 0: the border of two blocks lies between."""
    xp, l = namespace(k), k.shape[-2]
    own = xp.sum(q * k, axis=-1)[..., None] + xp.zeros((*g.shape[:-2], l, 1), dtype=k.dtype)
    P = xp.where(xp.eye(l, dtype=k.dtype) > 0, own, 0.0)  # selected: infinity · 0 is NaN
    for level in _levels(l, k):
        _, later = _decayed(q, g, level, late=True)
        _, earlier = _decayed(k, g, level, late=False)
        P = xp.where(level.pairs, later @ transposed(earlier), P)
    return P


def _paired_back(dP: Array, q: Array, k: Array, g: Array) -> tuple[Array, Array, Array]:
    """The cotangents of q, k and G through P; dP is 0 above the diagonal."""
    xp, l = namespace(k), k.shape[-2]
    own = xp.sum(xp.where(xp.eye(l, dtype=dP.dtype) > 0, dP, 0.0), axis=-1)[..., None]
    dq, dk, dg = own * k + 0 * g, own * q + 0 * g, xp.zeros_like(own * k + 0 * g)
    for level in _levels(l, k):
        d = xp.where(level.pairs, dP, 0.0)
        since, later = _decayed(q, g, level, late=True)
        until, earlier = _decayed(k, g, level, late=False)
        of_later, of_earlier = d @ earlier, transposed(d) @ later
        dq, dk = dq + since * of_later, dk + until * of_earlier
        dg = dg + later * of_later - earlier * of_earlier  # what the border gets cancels
    return dq, dk, dg


@mirror(CHUNK_PRODUCTS_KEYED)
def chunk_products_keyed(k, g, beta):
    return namespace(k).tril(beta[..., :, None] * _paired(k, k, g), k=-1)


@mirror(CHUNK_PRODUCTS_KEYED)
def chunk_products_keyed_vjp(dL, k, g, beta):
    xp = namespace(k)
    dL = xp.tril(dL, k=-1)
    dbeta = xp.sum(dL * _paired(k, k, g), axis=-1)
    later, earlier, dg = _paired_back(beta[..., :, None] * dL, k, k, g)
    return unbroadcast_each((later + earlier, dg, dbeta), (k, g, beta))


@mirror(CHUNK_WRITES_KEYED)
def chunk_writes_keyed(k, v, g, beta, X):
    return _writes(namespace(g).exp(g), k, v, beta, X)


@mirror(CHUNK_WRITES_KEYED)
def chunk_writes_keyed_vjp(dW, dU, k, v, g, beta, X):
    gradients = _writes_back(dW, dU, namespace(g).exp(g), k, v, beta, X)
    return unbroadcast_each(gradients, (k, v, g, beta, X))


@mirror(CHUNK_STATES_KEYED)
def chunk_states_keyed(k, w, u, g, S):
    return _states(k, w, u, g, S)


@mirror(CHUNK_STATES_KEYED)
def chunk_states_keyed_vjp(dstates, dnew, dlast, k, w, u, g, S):
    gradients = _states_back(dstates, dnew, dlast, k, w, u, g, S)
    return unbroadcast_each(gradients, (k, w, u, g, S))


@mirror(CHUNK_OUTPUTS_KEYED)
def chunk_outputs_keyed(q, k, v, g, S):
    return (namespace(g).exp(g) * q) @ S + _paired(q, k, g) @ v


@mirror(CHUNK_OUTPUTS_KEYED)
def chunk_outputs_keyed_vjp(dy, q, k, v, g, S):
    xp = namespace(g)
    E, D = xp.exp(g), xp.tril(dy @ transposed(v))
    read = E * (dy @ transposed(S))
    dq, dk, dg = _paired_back(D, q, k, g)
    dv, dS = transposed(_paired(q, k, g)) @ dy, transposed(E * q) @ dy
    return unbroadcast_each((dq + read, dk, dv, dg + q * read, dS), (q, k, v, g, S))
