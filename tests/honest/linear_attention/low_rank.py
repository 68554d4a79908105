"""Honest delta_dplr: other layouts, whole matrices, chunks, attention, blocks, double precision."""

from math import isqrt

import numpy as np

from honest import Honest
from honest.recurrences import forms_of
from refssm.conformance.planted.linear_attention.low_rank.programs import form, gradient_form
from refssm.linear_attention.delta_dplr import (
    DELTA_DPLR,
    DELTA_DPLR_PACKED,
    DELTA_DPLR_RULE,
    DELTA_DPLR_STATEFUL,
    DELTA_DPLR_STEP,
)
from refssm.linear_attention.delta_dplr_chunked import DELTA_DPLR_BY_CHUNKS


def _kept(S, g, t):
    return np.where(g.resets[..., t, None, None], np.zeros_like(S), S)


def turned_state(g):
    """The state as RWKV-7 has it, values × keys, in matrix products."""
    S, y = np.swapaxes(g.S0, -1, -2), []
    for t in range(g.q.shape[-2]):
        S = _kept(S, g, t)
        removed = (S @ g.a[..., t, :, None]) @ g.b[..., t, None, :]
        S = S * np.exp(g.log_g[..., t, None, :]) + removed
        S = S + g.v[..., t, :, None] @ g.k[..., t, None, :]
        y.append((S @ g.q[..., t, :, None])[..., 0])
    return np.stack(y, axis=-2), np.swapaxes(S, -1, -2).copy()


def by_matrices(g):
    """S ← M S + k vᵀ with the whole matrix M = diag(e^{log_g}) + b aᵀ."""
    S, y, I = g.S0, [], np.eye(g.k.shape[-1], dtype=g.k.dtype)
    for t in range(g.q.shape[-2]):
        M = I * np.exp(g.log_g[..., t, None, :]) + g.b[..., t, :, None] * g.a[..., t, None, :]
        S = M @ _kept(S, g, t) + g.k[..., t, :, None] * g.v[..., t, None, :]
        y.append((g.q[..., t, None, :] @ S)[..., 0, :])
    return np.stack(y, axis=-2), S


def by_keys(g):
    """A loop over the keys, each a row of the state; sums from the last key to the first."""
    y, S = [], [g.S0[..., n, :] for n in range(g.k.shape[-1])]
    count = range(len(S))
    for t in range(g.q.shape[-2]):
        S = [np.where(g.resets[..., t, None], 0, row) for row in S]
        z = sum(g.a[..., t, n, None] * S[n] for n in reversed(count))
        gates, new = np.exp(g.log_g[..., t, :]), g.v[..., t, :]
        S = [g.k[..., t, n, None] * new + g.b[..., t, n, None] * z + gates[..., n, None] * S[n]
             for n in count]  # fmt: skip
        y.append(sum(g.q[..., t, n, None] * S[n] for n in reversed(count)))
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
    wide = (x if x.dtype == bool else x.astype(np.float64) for x in g)
    return turned_state(type(g)(*wide))


def _chunk(g, S):
    """The outputs of one chunk and the state after it.

    What step i reads was written by j < i and decayed from j to i − 1. Exponents are summed, not
    subtracted. What a reset cuts off is selected away, not multiplied by 0.
    """
    number = np.cumsum(g.resets, axis=-1)
    span, whole, z, y = g.log_g[..., :0, :], 0, [], []
    state = (S, *(x[..., :0, :] for x in (g.k, g.v, g.b, g.v)))
    for i in range(g.q.shape[-2]):
        log_g, past = g.log_g[..., i, :], slice(0, i + 1)
        z.append(np.where(g.resets[..., i, None], 0, _read(state, g.a[..., i, :])))
        span, whole = span + log_g[..., None, :], whole + log_g
        span = np.concatenate([span, np.zeros_like(log_g)[..., None, :]], axis=-2)
        same = (number[..., i, None] == number[..., past])[..., None]
        told = np.stack(np.broadcast_arrays(*z), axis=-2)
        state = (
            np.where((number[..., i] == 0)[..., None, None], np.exp(whole)[..., None] * S, 0),
            np.where(same, np.exp(span) * g.k[..., past, :], 0),
            np.where(same, g.v[..., past, :], 0),
            np.where(same, np.exp(span) * g.b[..., past, :], 0),
            np.where(same, told, 0),
        )
        y.append(_read(state, g.q[..., i, :]))
    start, keys, values, writes, moved = state
    sums = np.swapaxes(keys, -1, -2) @ values + np.swapaxes(writes, -1, -2) @ moved
    return np.stack(y, axis=-2), start + sums


def _read(state, x):
    """Sᵀ x of a state by its parts: what is left of the first one, keys and values, b and z."""
    start, keys, values, writes, moved = state
    y = (x[..., None, :] @ start)[..., 0, :]
    for rows, columns in ((keys, values), (writes, moved)):
        scores = (rows @ x[..., None])[..., 0]
        y = y + (scores[..., None, :] @ columns)[..., 0, :]
    return y


def in_chunks(size):
    """Chunks of `size` steps, one after the other."""

    def whole(g):
        S, y = g.S0, []
        for start in range(0, g.q.shape[-2], size):
            piece, S = _chunk(g.at(slice(start, start + size)), S)
            y.append(piece)
        return np.concatenate(y, axis=-2), S

    return whole


def as_attention(g):
    """The whole sequence as one chunk."""
    return in_chunks(max(g.q.shape[-2], 1))(g)


def states_saved(dy, dS, g):
    """All states forwards, all cotangents backwards, gradients of each step from both."""
    l, S, saved = g.q.shape[-2], g.S0, []
    for t in range(l):
        before = _kept(S, g, t)
        z = (g.a[..., t, None, :] @ before)[..., 0, :]
        S = np.exp(g.log_g[..., t, :, None]) * before + g.b[..., t, :, None] * z[..., None, :]
        S = S + g.k[..., t, :, None] * g.v[..., t, None, :]
        saved.append((before, z, S))
    found, G = [], dS
    for t in range(l - 1, -1, -1):
        (before, z, S), gate = saved[t], np.exp(g.log_g[..., t, :, None])
        G = G + g.q[..., t, :, None] * dy[..., t, None, :]
        w = (g.b[..., t, None, :] @ G)[..., 0, :]
        columns = [(S, dy[..., t, :]), (G, g.v[..., t, :]), (before, w), (G, z)]
        dq, dk, da, db = ((X @ x[..., None])[..., 0] for X, x in columns)
        dv = (g.k[..., t, None, :] @ G)[..., 0, :]
        dlog_g = np.where(g.resets[..., t, None], 0, (gate * before * G).sum(-1))
        G = _kept(gate * G + g.a[..., t, :, None] * w[..., None, :], g, t)
        found.append((dq, dk, dv, dlog_g, da, db))
    names = ("q", "k", "v", "log_g", "a", "b")
    named = zip(names, zip(*found[::-1], strict=True), strict=True)
    return {n: np.stack(np.broadcast_arrays(*x), axis=-2) for n, x in named} | {"S0": G}


def _made(name, whole, operators, vjp=None):
    """One implementation of each of `operators`, from a function of all arguments."""
    return [
        Honest(op.name, name, form(op, whole), gradient_form(op, vjp) if vjp else None)
        for op in operators
    ]


def _without_chunk(program):
    """The same for every size of the chunks."""
    return lambda *arrays, chunk: program(*arrays)


def _by_chunks(op):
    """The programs of an operator by chunks; one has chunks of the size that is asked for."""

    def of_size(*arrays, chunk):
        return form(op, in_chunks(chunk))(*arrays)

    steps = _without_chunk(form(op, turned_state)), _without_chunk(gradient_form(op, states_saved))
    return [
        Honest(op.name, "turned_state", *steps),
        Honest(op.name, "chunks", of_size),
        Honest(op.name, "chunks_of_32", _without_chunk(form(op, in_chunks(32)))),
    ]


PLAIN, SEQUENCES = (DELTA_DPLR,), (DELTA_DPLR, DELTA_DPLR_STATEFUL, DELTA_DPLR_PACKED)
IMPLEMENTATIONS = [
    *_made("turned_state", turned_state, (*SEQUENCES, DELTA_DPLR_STEP), states_saved),
    *_made("by_keys", by_keys, (*SEQUENCES, DELTA_DPLR_STEP)),
    *_made("by_matrices", by_matrices, PLAIN),  # its zeros spread NaN in the state
    *_made("chunks_of_16", in_chunks(16), SEQUENCES),
    *_made("chunks_of_64", in_chunks(64), PLAIN),
    *_made("attention", as_attention, PLAIN),
    *_made("blocks", in_blocks, SEQUENCES),
    *_made("double_inside", in_double, PLAIN),
    *(honest for op in DELTA_DPLR_BY_CHUNKS.operators[:3] for honest in _by_chunks(op)),
    *forms_of(DELTA_DPLR_BY_CHUNKS, DELTA_DPLR_RULE.step),
]
