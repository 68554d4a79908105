"""Honest stages of a chunk: other orders of sums, blocks of decays, inverses in blocks, steps."""

import numpy as np
from scipy.linalg import solve_triangular

from honest import Honest
from refssm._numerics.broadcasting import unbroadcast_each
from refssm.conformance.planted.linear_attention.stage_programs import KEYED, STAGES, of_heads

BLOCK = 8


def _doubled(log_g):
    """Sums of 1, 2, 4, … steps."""
    G, span = log_g.copy(), 1
    while span < G.shape[-1]:
        G = np.concatenate([G[..., :span], G[..., span:] + G[..., :-span]], axis=-1)
        span *= 2
    return G


def _in_blocks(log_g):
    """Sums within blocks, and then those of the blocks before."""
    pieces, before = [log_g[..., :0]], np.zeros_like(log_g[..., :1])
    for start in range(0, log_g.shape[-1], BLOCK):
        inside = np.cumsum(log_g[..., start : start + BLOCK], axis=-1)
        pieces.append(before + inside)
        before = before + inside[..., -1:]
    return np.concatenate(pieces, axis=-1)


def _gates_back(dg, log_g):
    """All of the sum less what came before."""
    later = np.flip(_in_blocks(np.flip(dg, -1)), -1)
    return unbroadcast_each((later,), (log_g,))


def _pairs_by_steps(q, k, g):
    """Σ_n q_in k_jn e^{G_in − G_jn} for i ≥ j, one pair after the other."""
    l = k.shape[-2]
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], g.shape[:-2])
    P = np.zeros((*batch, l, l), np.result_type(q, k, g))
    for i in range(l):
        for j in range(i + 1):
            weighed = q[..., i, :] * np.exp(g[..., i, :] - g[..., j, :])
            P[..., i, j] = (weighed * k[..., j, :]).sum(-1)
    return P


def _pairs_in_blocks(q, k, g):
    """Later rows decay from the start of their block on, earlier ones up to it."""
    P = _pairs_by_steps(q[..., :0, :], k[..., :0, :], g[..., :0, :])
    l = k.shape[-2]
    P = np.zeros((*P.shape[:-2], l, l), P.dtype)
    for start in range(0, l, BLOCK):
        w, past = slice(start, start + BLOCK), slice(0, start)
        P[..., w, w] = _pairs_by_steps(q[..., w, :], k[..., w, :], g[..., w, :])
        border = g[..., start : start + 1, :]
        later = q[..., w, :] * np.exp(g[..., w, :] - border)
        earlier = k[..., past, :] * np.exp(border - g[..., past, :])
        P[..., w, past] = later @ np.swapaxes(earlier, -1, -2)
    return P


def _products(pairs):
    return lambda k, g, beta: np.tril(beta[..., None] * pairs(k, k, g), -1)


def _by_columns(L):
    """SciPy's triangular solve, for each matrix of the batch."""
    I, X = np.eye(L.shape[-1], dtype=L.dtype), np.empty_like(L)
    for member in np.ndindex(L.shape[:-2]):
        given = np.where(np.isfinite(L[member]), L[member], 0)
        X[member] = solve_triangular(given, I, lower=True, unit_diagonal=True)
        X[member] = X[member] if np.isfinite(np.tril(L[member], -1)).all() else np.nan
    return X


def _by_halves(L):
    """[[X, 0], [−Y M X, Y]] of the inverses X and Y of both halves."""
    l = L.shape[-1]
    if l <= 1:
        return np.broadcast_to(np.eye(l, dtype=L.dtype), L.shape).copy()
    half, inverse = l // 2, np.zeros_like(L)
    X, Y = _by_halves(L[..., :half, :half]), _by_halves(L[..., half:, half:])
    inverse[..., :half, :half], inverse[..., half:, half:] = X, Y
    inverse[..., half:, :half] = -Y @ (L[..., half:, :half] @ X)
    return inverse


def _by_blocks(L):
    """Diagonal blocks by substitution, and then one block row after the other."""
    l, X = L.shape[-1], np.zeros_like(L)
    for start in range(0, l, BLOCK):
        w, past = slice(start, start + BLOCK), slice(0, start)
        own = _by_halves(L[..., w, w])
        X[..., w, w] = own
        X[..., w, past] = -own @ (L[..., w, past] @ X[..., past, past])
    return X


def _inverse_back(dX, L):
    """Two triangular solves."""
    Y = np.swapaxes(_by_blocks(L), -1, -2)
    return unbroadcast_each((-np.tril((Y @ dX) @ Y, -1),), (L,))


def _every(*arrays):
    """Two outputs for all leading axes."""
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in arrays))
    return tuple(np.broadcast_to(x, (*batch, *x.shape[-2:])).copy() for x in arrays)


def _writes_at_once(k, v, g, beta, X):
    """One product for W and U side by side."""
    keys, values = _every(beta[..., None] * np.exp(g) * k, beta[..., None] * v)
    both = np.tril(X) @ np.concatenate([keys, values], axis=-1)
    return both[..., : k.shape[-1]].copy(), both[..., k.shape[-1] :].copy()


def _writes_by_steps(k, v, g, beta, X):
    """One step after the other, rates in X."""
    rates = np.tril(X) * beta[..., None, :]
    W, U = _every(0 * (rates @ (np.exp(g) * k)), 0 * (rates @ v))
    for j in range(k.shape[-2]):
        decayed = np.exp(g[..., j, :]) * k[..., j, :]
        W[..., j:, :] = W[..., j:, :] + rates[..., j:, j, None] * decayed[..., None, :]
        U[..., j:, :] = U[..., j:, :] + rates[..., j:, j, None] * v[..., j, None, :]
    return W, U


def _ends(g):
    return (
        g[..., -1:, :] if g.shape[-2] else np.zeros_like(g, shape=(*g.shape[:-2], 1, g.shape[-1]))
    )


def _states_by(after):
    """States chunk by chunk, S' = after(k, w, u, v, g, S)."""

    def program(k, w, u, g, S):
        shapes = [x.shape[:-3] for x in (k, w, u, g)]
        batch, m = np.broadcast_shapes(*shapes, S.shape[:-2]), k.shape[-3]
        S = np.broadcast_to(S, (*batch, *S.shape[-2:])).copy()
        states = np.zeros((*batch, m, *S.shape[-2:]), S.dtype)
        new = np.zeros((*batch, *u.shape[-3:]), S.dtype)
        for c in range(m):
            states[..., c, :, :] = S
            now = [x[..., c, :, :] for x in (k, w, u)]
            new[..., c, :, :] = now[2] - now[1] @ S
            S = after(*now, new[..., c, :, :], g[..., c, :, :], S)
        return states, new, S

    return program


def _by_matrix(k, w, u, v, g, S):
    """M S + K̃ᵀ U with the matrix of the whole chunk."""
    keys = np.swapaxes(np.exp(_ends(g) - g) * k, -1, -2)
    decay = np.swapaxes(np.exp(_ends(g)), -1, -2)
    return (np.eye(k.shape[-1], dtype=k.dtype) * decay - keys @ w) @ S + keys @ u


def _turned(k, w, u, v, g, S):
    """The state as values × keys, values decayed in place of keys where one gate is for all."""
    decays = np.exp(_ends(g) - g)
    keys, values = (k, decays * v) if g.shape[-1] == 1 else (decays * k, v)
    turned = np.exp(_ends(g)) * np.swapaxes(S, -1, -2) + np.swapaxes(values, -1, -2) @ keys
    return np.swapaxes(turned, -1, -2)


def _step_by_step(k, w, u, v, g, S):
    """S ← e^{G_i − G_{i−1}} S + k_i v_iᵀ."""
    last = np.zeros_like(g[..., :1, :])[..., 0, :] if g.shape[-2] else 0
    for i in range(k.shape[-2]):
        decay = np.exp(g[..., i, :] - last)[..., None]
        S, last = decay * S + k[..., i, :, None] * v[..., i, None, :], g[..., i, :]
    return S


def _outputs_by(pairs):
    """(e^G Q) S + P V."""
    return lambda q, k, v, g, S: (np.exp(g) * q) @ S + pairs(q, k, g) @ v


def _wide(op):
    """In a wider type, rounded once; both directions."""

    def widened(function):
        def program(*args):
            kind = np.result_type(*args)
            wider = np.float64 if kind == np.float32 else np.longdouble
            found = function(*(a.astype(wider) for a in args))
            found = found if isinstance(found, tuple) else (found,)
            narrow = tuple(np.asarray(y, kind) for y in found)
            return narrow if len(narrow) != 1 else narrow[0]

        return program

    def back(*args):
        found = widened(op.bare_vjp)(*args)
        return found if isinstance(found, tuple) else (found,)

    return Honest(op.name, "wider", widened(op.reference), back)


GATES, PRODUCTS, INVERSE, WRITES, STATES, OUTPUTS = STAGES
OF_HEADS = [
    (PRODUCTS, "pairs", _products(_pairs_by_steps)),
    (PRODUCTS, "blocks", _products(_pairs_in_blocks)),
    (WRITES, "at_once", _writes_at_once),
    (WRITES, "by_steps", _writes_by_steps),
    (STATES, "by_matrix", _states_by(_by_matrix)),
    (STATES, "turned", _states_by(_turned)),
    (STATES, "step_by_step", _states_by(_step_by_step)),
    (OUTPUTS, "pairs", _outputs_by(_pairs_by_steps)),
    (OUTPUTS, "blocks", _outputs_by(_pairs_in_blocks)),
]
OF_KEYS = dict(zip((PRODUCTS, WRITES, STATES, OUTPUTS), KEYED, strict=True))
PROGRAMS = [*OF_HEADS, *((OF_KEYS[op], name, program) for op, name, program in OF_HEADS)]
IMPLEMENTATIONS = [
    *(_wide(op) for op in (*STAGES, *KEYED)),
    Honest(GATES.name, "doubled", _doubled),
    Honest(GATES.name, "blocks", _in_blocks, _gates_back),
    Honest(INVERSE.name, "by_columns", _by_columns),
    Honest(INVERSE.name, "halves", _by_halves),
    Honest(INVERSE.name, "blocks", _by_blocks, _inverse_back),
    *(Honest(op.name, name, of_heads(op, program)) for op, name, program in PROGRAMS),
]
