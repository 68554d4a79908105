"""Mirrors of the stages of a chunk in plain array code: masked matrix products, gates as rows.

G has an axis of keys of length 1, or of length n where each key has a gate; then a row of pairs at
a time is made. Exponents are differences G_i − G_j of i ≥ j, so no exponential overflows.
"""

from refssm.linear_attention.stages import (
    CHUNK_GATES,
    CHUNK_INVERSE,
    CHUNK_OUTPUTS,
    CHUNK_PRODUCTS,
    CHUNK_STATES,
    CHUNK_WRITES,
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
    return (unbroadcast(xp.flip(_sums(xp.flip(dg, axis=-1)), axis=-1), log_g),)


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
    """Row by row: X_i = e_i − Σ_{j<i} L_ij X_j."""
    xp, l = namespace(L), L.shape[-1]
    unit = xp.eye(l, dtype=L.dtype)
    rows = L[..., :0, :]
    for i in range(l):
        row = xp.broadcast_to(unit[i : i + 1, :], (*L.shape[:-2], 1, l))
        if i:
            row = row - L[..., i : i + 1, :i] @ rows
        rows = xp.concat([rows, row], axis=-2)
    return rows


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
