"""Numba mirrors of refssm.linear_attention.delta_dplr: one kernel for each direction.

By chunks they are the same kernels, one step after the other: `chunk` changes nothing.

One pass over the state for each step: it writes the state, reads it for q, and for a of the next
step. Gradients go block by block of √l steps, from the last to the first [chen2016training].
"""

# pyright: reportCallIssue=false, reportAttributeAccessIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm._numerics.broadcasting import unbroadcast_each
from refssm.jit._compiling.gufunc import blocks, gufunc, joined
from refssm.jit._compiling.mirror import mirror
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import plain, times_plus, total
from refssm.jit._vectors.matrix import (
    BYTES,
    block,
    held,
    lanes_at,
    lanes_of,
    matrix,
    memory_of,
    neighbours,
    number,
    put,
    put_lanes,
    zeros,
)
from refssm.jit.ssd.tiles import cleared, padded
from refssm.linear_attention.delta_dplr import DELTA_DPLR_RULE
from refssm.linear_attention.delta_dplr_chunked import DELTA_DPLR_BY_CHUNKS
from refssm.scan.blocks import no_resets

KINDS = ("f4", "f8")


# rows of what a step reads and writes beside the state
Z, Y, READ, V = range(4)


@part
def _in_lanes(q, k, a, b, gates, t, later, S0, u, S):
    """One step with whole vectors of values; S0 may be S."""
    plain()
    lanes, width = lanes_of(S), S.columns
    for c in range(0, width, lanes):
        put_lanes(u, Y, c, zeros(S))
        put_lanes(u, READ, c, zeros(S))
    for n in range(S.rows):
        for c in range(0, width, lanes):
            now = gates[n] * lanes_at(S0, n, c)
            now = times_plus(lanes_at(u, Z, c), b[t, n], now)
            now = times_plus(lanes_at(u, V, c), k[t, n], now)
            put_lanes(S, n, c, now)
            put_lanes(u, Y, c, times_plus(now, q[t, n], lanes_at(u, Y, c)))
            put_lanes(u, READ, c, times_plus(now, a[later, n], lanes_at(u, READ, c)))


@part
def _one_by_one(q, k, a, b, gates, t, later, S0, u, S):
    """The same for any number of values."""
    size, width = S.shape
    for p in range(width):
        put(u, Y, p, 0.0)
        put(u, READ, p, 0.0)
    for n in range(size):
        for p in range(width):
            S[n, p] = gates[n] * S0[n, p] + b[t, n] * number(u, Z, p) + k[t, n] * number(u, V, p)
            put(u, Y, p, number(u, Y, p) + S[n, p] * q[t, n])
            put(u, READ, p, number(u, READ, p) + S[n, p] * a[later, n])


@gufunc(
    "(l,n),(l,n),(l,p),(l,n),(l,n),(l,n),(n,p),(l)->(l,p),(n,p)",
    flag=7,
    kinds=KINDS,
)
def dplr_scan(q, k, v, log_g, a, b, S0, resets, y, S):
    """S_t = diag(e^{log_g_t}) S_{t-1} + b_t z_tᵀ + k_t v_tᵀ with z_t = S_{t-1}ᵀ a_t, from zero at a
    reset;  y_t = S_tᵀ q_t.

    The first step reads S0 and writes S: a single step takes as long as memory does."""
    (length, size), width, zero = q.shape, v.shape[1], q.dtype.type(0)
    gates, memory = np.ones(size, q.dtype), np.empty(4 * width * q.itemsize + BYTES, np.uint8)
    before, after, u = matrix(S0), matrix(S), memory_of(memory, 0, 4, width, zero)
    whole = neighbours(before) and neighbours(after) and width % lanes_of(after) == 0
    for p in range(width):
        put(u, READ, p, 0.0)
    for n in range(size):
        for p in range(width):
            if length:
                put(u, READ, p, number(u, READ, p) + S0[n, p] * a[0, n])
            else:
                S[n, p] = S0[n, p]
    for t in range(length):
        begins, later = resets[t], min(t + 1, length - 1)
        for p in range(width):
            put(u, Z, p, zero if begins else number(u, READ, p))
            put(u, V, p, v[t, p])
        for n in range(size):
            gates[n] = 1 if begins else np.exp(log_g[t, n])
            if begins:  # selected: NaN and infinity do not pass
                for p in range(width):
                    S[n, p] = 0
        start = t == 0 and not begins
        if whole:
            _in_lanes(q, k, a, b, gates, t, later, before if start else after, u, after)
        else:
            _one_by_one(q, k, a, b, gates, t, later, S0 if start else S, u, S)
        for p in range(width):
            y[t, p] = number(u, Y, p)
    held(memory)


# rows of the reverse pass beside z of all steps
OF_DY, OF_V, OF_W, OF_DV = range(4)


@part
def _trimmed(X, p):
    """Zeros behind the last value: an infinity times a zero there is NaN."""
    for n in range(X.rows if p < X.columns else 0):
        for c in range(p, X.columns):
            put(X, n, c, 0.0)


@part
def _read_by(S, x, t, rows, into):
    """Row `into`: Sᵀ x_t."""
    plain()
    for c in range(0, S.columns, lanes_of(S)):
        read = zeros(S)
        for n in range(S.rows):
            read = times_plus(lanes_at(S, n, c), x[t, n], read)
        put_lanes(rows, into, c, read)


@part
def _stepped(before, after, gates, b, k, t, rows, z):
    """The state after a step; row z has what a read."""
    plain()
    for n in range(before.rows):
        for c in range(0, before.columns, lanes_of(before)):
            now = gates[n] * lanes_at(before, n, c)
            now = times_plus(lanes_at(rows, z, c), b[t, n], now)
            put_lanes(after, n, c, times_plus(lanes_at(rows, OF_V, c), k[t, n], now))


@part
def _dots(S, rows, by, t, out):
    """out_t = S x with x the row `by`."""
    plain()
    for n in range(S.rows):
        dot = zeros(S)
        for c in range(0, S.columns, lanes_of(S)):
            dot = times_plus(lanes_at(S, n, c), lanes_at(rows, by, c), dot)
        out[t, n] = total(dot)


@part
def _driven(G, q, k, b, t, rows):
    """G += q dyᵀ; what b and k read of it."""
    plain()
    for c in range(0, G.columns, lanes_of(G)):
        w, dv = zeros(G), zeros(G)
        for n in range(G.rows):
            now = times_plus(lanes_at(rows, OF_DY, c), q[t, n], lanes_at(G, n, c))
            put_lanes(G, n, c, now)
            w, dv = times_plus(now, b[t, n], w), times_plus(now, k[t, n], dv)
        put_lanes(rows, OF_W, c, w)
        put_lanes(rows, OF_DV, c, dv)


@part
def _carried(G, before, gates, a, t, rows):
    """The gradient of the gates, and the cotangent of the state before a step."""
    plain()
    for n in range(G.rows):
        dot = zeros(G)
        for c in range(0, G.columns, lanes_of(G)):
            now = lanes_at(G, n, c)
            dot = times_plus(now, lanes_at(before, n, c), dot)
            now = gates[n] * now
            put_lanes(G, n, c, times_plus(lanes_at(rows, OF_W, c), a[t, n], now))
        gates[n] = gates[n] * total(dot)


@gufunc(
    "(l,p),(n,p),(l,n),(l,n),(l,p),(l,n),(l,n),(l,n),(n,p),(l)"
    "->(l,n),(l,n),(l,p),(l,n),(l,n),(l,n),(n,p)",
    flag=9,
    kinds=KINDS,
)
def dplr_back(dy, dS, q, k, v, log_g, a, b, S0, resets, dq, dk, dv, dlog_g, da, db, dS0):
    """Gradients of a block, with w = Gᵀ b:  G_t = q_t dy_tᵀ + e^{log_g_{t+1}} G_{t+1} +
    a_{t+1} w_{t+1}ᵀ; at the end dS0.

    In memory of whole vectors of values, with zeros behind the last one."""
    (length, size), p, zero = q.shape, v.shape[1], q.dtype.type(0)
    width = padded(p, lanes_of(matrix(q)))
    height, gates = (length + 2) * size + length + 4, np.ones(size, q.dtype)
    memory = np.zeros(height * width * q.itemsize + BYTES, np.uint8)
    whole = memory_of(memory, 0, height, width, zero)
    G, rows = block(whole, 0, 0, size, width), block(whole, size, 0, length + 4, width)
    states = block(whole, size + length + 4, 0, (length + 1) * size, width)
    for n in range(size):
        for c in range(p):
            put(G, n, c, dS[n, c])
            put(states, n, c, S0[n, c])
    for t in range(length):
        before, after = (
            block(states, t * size, 0, size, width),
            block(states, t * size + size, 0, size, width),
        )
        if resets[t]:  # no query reads the state before it from here on
            cleared(before)
        for n in range(size):
            gates[n] = 1 if resets[t] else np.exp(log_g[t, n])
        for c in range(p):
            put(rows, OF_DY, c, dy[t, c])
            put(rows, OF_V, c, v[t, c])
        _read_by(before, a, t, rows, 4 + t)
        _trimmed(block(rows, 4 + t, 0, 1, width), p)
        _stepped(before, after, gates, b, k, t, rows, 4 + t)
        _trimmed(after, p)
        _dots(after, rows, OF_DY, t, dq)
    for t in range(length - 1, -1, -1):
        before = block(states, t * size, 0, size, width)
        for n in range(size):
            gates[n] = 1 if resets[t] else np.exp(log_g[t, n])
        for c in range(p):
            put(rows, OF_DY, c, dy[t, c])
            put(rows, OF_V, c, v[t, c])
        _driven(G, q, k, b, t, rows)
        _trimmed(G, p)
        _trimmed(block(rows, 0, 0, 4, width), p)
        _dots(G, rows, OF_V, t, dk)
        _dots(before, rows, OF_W, t, da)
        _dots(G, rows, 4 + t, t, db)
        _carried(G, before, gates, a, t, rows)
        _trimmed(G, p)
        for c in range(p):
            dv[t, c] = number(rows, OF_DV, c)
        for n in range(size):
            dlog_g[t, n] = 0 if resets[t] else gates[n]
        if resets[t]:
            cleared(G)
    for n in range(size):
        for c in range(p):
            dS0[n, c] = number(G, n, c)
    held(memory)


def run(arguments, S0, resets, *, chunk=0):
    """All outputs, and the last state."""
    del chunk
    given, S0, resets = _completed(arguments, S0, resets)
    kind = np.result_type(*arguments, S0)
    y, S = dplr_scan(*given, S0, resets)
    of_state = np.result_type(*arguments[1:], S0)  # q does not enter the state
    return y.astype(kind, copy=False), S.astype(of_state, copy=False)


def back(cotangents, arguments, S0, resets, *, chunk=0):
    """Gradients for the arguments and S0."""
    del chunk
    given, start, begun = _completed(arguments, S0, resets)
    dy, dS = (*cotangents, np.zeros_like(start))[:2]

    def cut(w):
        return [x[..., w, :] for x in given]

    def after(w, S):
        return dplr_scan(*cut(w), S, begun[..., w])[1]

    pieces = []
    for w, S in blocks(after, start, dy.shape[-2]):
        *parts, dS = dplr_back(dy[..., w, :], dS, *cut(w), S, begun[..., w])
        pieces.append(parts)
    gradients = (*joined(pieces, -2), dS)
    return unbroadcast_each(gradients, (*arguments, start if S0 is None else S0))


def _completed(arguments, S0, resets):
    """The kernel's arguments, the first state and the resets."""
    _, k, v, *_ = arguments
    rest = np.zeros((k.shape[-1], v.shape[-1]), k.dtype)
    resets = no_resets(k.shape[-2]) if resets is None else resets
    return arguments, rest if S0 is None else S0, resets


(
    (delta_dplr, delta_dplr_vjp),
    (delta_dplr_stateful, delta_dplr_stateful_vjp),
    (delta_dplr_packed, delta_dplr_packed_vjp),
    (delta_dplr_packed_stateful, delta_dplr_packed_stateful_vjp),
    (delta_dplr_states, delta_dplr_states_vjp),
    (delta_dplr_step, delta_dplr_step_vjp),
) = DELTA_DPLR_RULE.mirrors(run, back, mirror)
(
    (delta_dplr_chunked, delta_dplr_chunked_vjp),
    (delta_dplr_chunked_stateful, delta_dplr_chunked_stateful_vjp),
    (delta_dplr_chunked_packed, delta_dplr_chunked_packed_vjp),
    (delta_dplr_chunked_packed_stateful, delta_dplr_chunked_packed_stateful_vjp),
) = DELTA_DPLR_BY_CHUNKS.mirrors(run, back, mirror)
