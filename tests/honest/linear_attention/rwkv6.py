"""Honest RWKV-6: other layouts, single keys, attention, chunks, blocks of time, double inside."""

from math import isqrt

import numpy as np

from honest import Honest
from honest.recurrences import forms_of
from refssm.conformance.planted.linear_attention.rwkv6.programs import form, gradient_form
from refssm.linear_attention.rwkv6 import RWKV6_RECURRENCE
from refssm.linear_attention.rwkv6_chunked import RWKV6_BY_CHUNKS


def _kept(S, g, t):
    return np.where(g.resets[..., t, None, None], np.zeros_like(S), S)


def turned_state(g):
    """The state as (p, n), values × keys; the bonus as one number times v."""
    S, y = np.swapaxes(g.S0, -1, -2), []
    for t in range(g.r.shape[-2]):
        S = _kept(S, g, t)
        r, k, v = (x[..., t, :] for x in (g.r, g.k, g.v))
        own = (r * g.u * k).sum(-1, keepdims=True)
        y.append((S @ r[..., None])[..., 0] + own * v)
        S = S * np.exp(g.log_w[..., t, None, :]) + v[..., :, None] * k[..., None, :]
    return np.stack(y, axis=-2), np.swapaxes(S, -1, -2).copy()


def by_keys(g):
    """A loop over the keys, each a row of the state."""
    y, S = [], [g.S0[..., n, :] for n in range(g.k.shape[-1])]
    zero = np.zeros_like(g.S0[..., 0, :])
    for t in range(g.r.shape[-2]):
        S = [np.where(g.resets[..., t, None], zero, row) for row in S]
        new = [g.k[..., t, n, None] * g.v[..., t, :] for n in range(len(S))]
        y.append(sum((g.r[..., t, n, None] * (row + g.u[..., n, None] * new[n])
                      for n, row in enumerate(S)), zero))  # fmt: skip
        S = [np.exp(g.log_w[..., t, n, None]) * row + new[n] for n, row in enumerate(S)]
    return np.stack(y, axis=-2), np.stack(S, axis=-2)


def _chunk(g, S):
    """The outputs of one chunk and the state after it.

    Row i has e^{Σ_{j<s<i} log_w_s} k_j for j < i; the sums go on from row to row, without
    differences, and what a reset cuts off is selected away.
    """
    number, y, l = np.cumsum(g.resets, axis=-1), [], g.r.shape[-2]
    span, whole = g.log_w[..., :0, :], np.zeros_like(g.log_w[..., 0, :])

    def past(i):
        """Decayed keys and values of the steps before i, and the state from before the chunk."""
        own = number[..., min(i, l - 1)]
        same = (own[..., None] == number[..., :i])[..., None]
        keys = np.where(same, np.exp(span) * g.k[..., :i, :], 0)
        start = np.where((own == 0)[..., None, None], np.exp(whole)[..., None] * S, 0)
        return keys, np.where(same, g.v[..., :i, :], 0), start

    for i in range(l):
        keys, told, start = past(i)
        r, log_w = g.r[..., i, :], g.log_w[..., i, :]
        scores = (keys @ r[..., :, None])[..., 0]
        bonus = (r * g.u * g.k[..., i, :]).sum(-1, keepdims=True)
        read = (r[..., None, :] @ start)[..., 0, :] + (scores[..., None, :] @ told)[..., 0, :]
        y.append(read + bonus * g.v[..., i, :])
        span = np.concatenate([span + log_w[..., None, :], 0 * log_w[..., None, :]], axis=-2)
        whole = whole + log_w
    keys, told, start = past(l)
    return np.stack(y, axis=-2), start + np.swapaxes(keys, -1, -2) @ told


def in_chunks(size):
    """Chunks of `size` steps, one after the other."""

    def whole(g):
        S, y = g.S0, []
        for start in range(0, g.r.shape[-2], size):
            piece, S = _chunk(g.at(slice(start, start + size)), S)
            y.append(piece)
        return np.concatenate(y, axis=-2), S

    return whole


def as_attention(g):
    """The whole sequence as one chunk."""
    return in_chunks(max(g.r.shape[-2], 1))(g)


def in_blocks(g):
    """Blocks of √l steps from rest; what the state before a block becomes in it is added."""
    l, S, y = g.r.shape[-2], g.S0, []
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
    return turned_state(type(g)(*(x if x.dtype == bool else x.astype(np.float64) for x in g)))


def states_saved(dy, dS, g):
    """All states forwards, all cotangents backwards, gradients of each step from both."""
    l, S, saved, found = g.r.shape[-2], g.S0, [], []
    for t in range(l):
        S = _kept(S, g, t)
        saved.append(S)
        S = np.exp(g.log_w[..., t, :, None]) * S + g.k[..., t, :, None] * g.v[..., t, None, :]
    G, du = dS, np.zeros_like(g.u)
    for t in range(l - 1, -1, -1):
        r, k, v, a = g.r[..., t, :], g.k[..., t, :], g.v[..., t, :], np.exp(g.log_w[..., t, :])
        out, S = dy[..., t, :], saved[t]
        along = (out * v).sum(-1, keepdims=True)
        own = (r * g.u * k).sum(-1, keepdims=True)
        dr = (S @ out[..., None])[..., 0] + along * g.u * k
        dk = (G @ v[..., None])[..., 0] + along * g.u * r
        dv = (k[..., None, :] @ G)[..., 0, :] + own * out
        dlog_w = np.where(g.resets[..., t, None], 0, a * (S * G).sum(-1))
        du = du + along * r * k
        G = _kept(a[..., :, None] * G + r[..., :, None] * out[..., None, :], g, t)
        found.append((dr, dk, dv, dlog_w))
    named = zip(("r", "k", "v", "log_w"), zip(*found[::-1], strict=True), strict=True)
    gradients = {name: np.stack(np.broadcast_arrays(*x), axis=-2) for name, x in named}
    return gradients | {"u": du, "S0": G}


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
    """The programs of one operator by chunks."""
    steps, back = form(op, turned_state), gradient_form(op, states_saved)

    def of_size(*arrays, chunk):
        return form(op, in_chunks(chunk))(*arrays)

    return [
        Honest(op.name, "turned_state", _without_chunk(steps), _without_chunk(back)),
        Honest(op.name, "chunks", of_size),
        Honest(op.name, "chunks_of_32", _without_chunk(form(op, in_chunks(32)))),
    ]


PLAIN, *SEQUENCES = RWKV6_RECURRENCE.operators[:3]
STEP = RWKV6_RECURRENCE.operators[-1]
IMPLEMENTATIONS = [
    *_made("turned_state", turned_state, (PLAIN, *SEQUENCES, STEP), states_saved),
    *_made("chunks_of_16", in_chunks(16), (PLAIN, *SEQUENCES)),
    *_made("attention", as_attention, [PLAIN]),
    *_made("blocks", in_blocks, (PLAIN, *SEQUENCES)),
    *_made("double_inside", in_double, [PLAIN]),
    *_made("by_keys", by_keys, (PLAIN, STEP)),
    *forms_of(RWKV6_RECURRENCE),
    *(honest for op in RWKV6_BY_CHUNKS.operators[:3] for honest in _by_chunks(op)),
    *forms_of(RWKV6_BY_CHUNKS, RWKV6_RECURRENCE.step),
]
