"""Honest linear attention, step by step: other layouts, whole matrices, and blocks of time."""

from math import isqrt

import numpy as np


def _kept(S, g, t):
    return np.where(g.resets[..., t, None, None], np.zeros_like(S), S)


def turned_state(g):
    """The state as (p, n), values × keys, in matrix products."""
    S, y = np.swapaxes(g.S0, -1, -2), []
    for t in range(g.q.shape[-2]):
        S = _kept(S, g, t) * np.exp(g.log_g[..., t, None, :])
        new = g.v[..., t, :]
        if g.beta is not None:
            new = g.beta[..., t, None] * (new - (S @ g.k[..., t, :, None])[..., 0])
        S = S + new[..., :, None] * g.k[..., t, None, :]
        y.append((S @ g.q[..., t, :, None])[..., 0])
    return np.stack(y, axis=-2), np.swapaxes(S, -1, -2).copy()


def by_matrices(g):
    """S ← M S + b vᵀ with the whole matrix M = (I − β k kᵀ) diag(e^{log_g})."""
    S, y, I = g.S0, [], np.eye(g.k.shape[-1], dtype=g.k.dtype)
    for t in range(g.q.shape[-2]):
        k, a = g.k[..., t, :], np.exp(g.log_g[..., t, :])
        M, b = I * a[..., None, :], k
        if g.beta is not None:
            b = g.beta[..., t, None] * k
            M = M - b[..., :, None] * (k * a)[..., None, :]
        S = (
            np.where(g.resets[..., t, None, None], 0, M @ S)
            + b[..., :, None] * g.v[..., t, None, :]
        )
        y.append((g.q[..., t, None, :] @ S)[..., 0, :])
    return np.stack(y, axis=-2), S


def by_keys(g):
    """A loop over the keys, each a row of the state."""
    y, S = [], [g.S0[..., n, :] for n in range(g.k.shape[-1])]
    for t in range(g.q.shape[-2]):
        gates = np.exp(g.log_g[..., t, :])
        rows = [gates[..., min(n, gates.shape[-1] - 1), None] * row for n, row in enumerate(S)]
        new = g.v[..., t, :]
        if g.beta is not None:
            old = sum(g.k[..., t, n, None] * row for n, row in enumerate(rows))
            new = g.beta[..., t, None] * (new - old)
        S = [row + g.k[..., t, n, None] * new for n, row in enumerate(rows)]
        y.append(sum(g.q[..., t, n, None] * row for n, row in enumerate(S)))
    return np.stack(y, axis=-2), np.stack(S, axis=-2)


def in_blocks(g):
    """Blocks of √l steps from rest; what the state before a block becomes in it is added."""
    l, S, y = g.q.shape[-2], g.S0, []
    size = isqrt(max(l - 1, 0)) + 1
    for start in range(0, l, size):
        piece = g.at(slice(start, start + size))
        own, ended = turned_state(piece.but(S0=np.zeros_like(g.S0)))
        carried, last = turned_state(piece.but(S0=S, v=np.zeros_like(piece.v)))
        y.append(own + carried)
        S = ended + last
    return np.concatenate(y, axis=-2), S


def in_double(g):
    """Double precision inside, rounded once."""
    wide = (x if x is None or x.dtype == bool else x.astype(np.float64) for x in g)
    return turned_state(type(g)(*wide))


def states_saved(dy, dS, g):
    """All states forwards, all cotangents backwards, gradients of each step from both."""
    l, S, saved = g.q.shape[-2], g.S0, []
    rates = np.ones_like(g.v[..., 0]) if g.beta is None else g.beta
    for t in range(l):
        Z = np.exp(g.log_g[..., t, :, None]) * _kept(S, g, t)
        r = g.v[..., t, :]
        if g.beta is not None:
            r = r - (g.k[..., t, None, :] @ Z)[..., 0, :]
        S = Z + g.k[..., t, :, None] * (rates[..., t, None] * r)[..., None, :]
        saved.append((Z, r, S))
    found, G = [], dS
    for t in range(l - 1, -1, -1):
        (Z, r, S), k = saved[t], g.k[..., t, :]
        G = G + g.q[..., t, :, None] * dy[..., t, None, :]
        w = (k[..., None, :] @ G)[..., 0, :]
        dv = rates[..., t, None] * w
        dk, dZ = (G @ r[..., None])[..., 0], G
        if g.beta is not None:
            dk = rates[..., t, None] * (dk - (Z @ w[..., None])[..., 0])
            dZ = G - k[..., :, None] * dv[..., None, :]
        dlog_g = (Z * dZ).sum(-1)
        if g.log_g.shape[-1] < k.shape[-1]:
            dlog_g = dlog_g.sum(-1, keepdims=True)
        G = _kept(np.exp(g.log_g[..., t, :, None]) * dZ, g, t)
        dq = (S @ dy[..., t, :, None])[..., 0]
        found.append((dq, dk, dv, dlog_g, (r * w).sum(-1)[..., None]))
    named = zip(("q", "k", "v", "log_g", "beta"), zip(*found[::-1], strict=True), strict=True)
    gradients = {name: np.stack(np.broadcast_arrays(*x), axis=-2) for name, x in named}
    return gradients | {"beta": gradients["beta"][..., 0], "S0": G}
