"""The gradients of state-space duality in real arithmetic, piece by piece as in `forward`.

In a piece from the state S, let G be the cotangent of the state after its last step q. With
w_i = a_0 … a_i and W_ij = a_{j+1} … a_i the recurrences of S_t and G_t, written out, are

    S_i = w_i S + Σ_{j≤i} W_ij x_j B_jᵀ,    G_j = W_qj G + Σ_{i≥j} W_ij dy_i C_iᵀ.

Put into dx_j = G_j B_j, dB_j = G_jᵀ x_j, dC_i = S_iᵀ dy_i and dlog_a_t = Σ a_t S_{t-1} G_t, with
M_ij = W_ij (C_i · B_j) and D_ij = W_ij (dy_i · x_j), they give

    dx_j = W_qj G B_j + Σ_{i≥j} M_ij dy_i,
    dB_j = W_qj Gᵀ x_j + Σ_{i≥j} D_ij C_i,    dC_i = w_i Sᵀ dy_i + Σ_{j≤i} D_ij B_j,
    dlog_a_t = w_q Σ S G + Σ_{i≥t} C_i · (w_i Sᵀ dy_i) + Σ_{j<t} B_j · (W_qj Gᵀ x_j)
               + Σ_{j<t≤i} D_ij (C_i · B_j),
    G ← w_q G + Σ_i w_i dy_i C_iᵀ.

All sums over time in dlog_a are sums within a piece, and no difference of two is taken. Heads that
share B and C share the products with D, which is summed over them first.

The states before blocks of CHUNK steps are stored for one span of blocks at a time, and one state
for each span: O(p n √l) numbers per head [chen2016training].
"""

# pyright: reportCallIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

from collections import namedtuple

import numpy as np
from numba import njit

from refssm.jit._gufunc import gufunc
from refssm.jit.ssd.forward import CHUNK, REAL, decays, nothing, piece_end
from refssm.jit.ssd.tiles import (
    ROWS,
    buffer,
    dense,
    filled,
    moved,
    multiplied,
    padded,
    transposed,
    unset,
)

SPAN = 128  # blocks, or √(all blocks) where that is more


Work = namedtuple(
    "Work",
    "kept, zeros, ones, alpha, beta, later, X, Y, weighted_X, weighted_Y, dX, "
    "B, C, dB, dC, more, E, M, D, crossing, XT, GT, weights, product",
)


@njit(inline="always")
def _work(p, n, x):
    """The arrays that every piece needs; most in one piece of memory, which compiles faster."""
    P, N = padded(p, x), padded(n, x)
    # one vector more: rows a power of two apart would share few lines of the first cache
    memory = buffer(6 + 14 * CHUNK, max(P, N, CHUNK) + 1, x)
    memory[2] = 1
    blocks = memory[6:]
    return Work(
        memory[0],
        memory[1],
        memory[2],
        memory[3],
        memory[4],
        memory[5],
        blocks[:CHUNK, :P],
        blocks[CHUNK : 2 * CHUNK, :P],
        blocks[2 * CHUNK : 3 * CHUNK, :P],
        blocks[3 * CHUNK : 4 * CHUNK, :P],
        blocks[4 * CHUNK : 5 * CHUNK, :P],
        blocks[5 * CHUNK : 6 * CHUNK, :N],
        blocks[6 * CHUNK : 7 * CHUNK, :N],
        blocks[7 * CHUNK : 8 * CHUNK, :N],
        blocks[8 * CHUNK : 9 * CHUNK, :N],
        blocks[9 * CHUNK : 10 * CHUNK, :N],
        blocks[10 * CHUNK : 11 * CHUNK, :CHUNK],
        blocks[11 * CHUNK : 12 * CHUNK, :CHUNK],
        blocks[12 * CHUNK : 13 * CHUNK, :CHUNK],
        blocks[13 * CHUNK : 14 * CHUNK, :CHUNK],
        buffer(P, CHUNK, x),
        buffer(N, P, x),
        np.empty((CHUNK, CHUNK + 1), x.dtype),
        np.empty(CHUNK + 1),
    )


@njit(inline="always")
def _states(x, log_a, B, resets, states, rest, work):
    """states[k] = the states before block k, and after the last one, from states[0]."""
    start, length = 0, x.shape[1]
    while start < length:
        stop = piece_end(start, length, resets)
        if stop < length and stop % CHUNK:  # a reset follows, so nobody needs the state
            start = stop
            continue
        w, count = slice(start, stop), stop - start
        moved(work.B, B[w], work.ones)
        for h in range(len(x)):
            decays(log_a[h, w], resets[start], work.product, work.weights)
            last = work.weights[count - 1]
            moved(work.weighted_X, x[h, w], last[1:])
            work.kept[:] = last[0]
            before = rest if resets[start] else states[start // CHUNK, h]
            after = states[-(-stop // CHUNK), h]
            multiplied(after, work.kept, before, work.weighted_X[:count].T, work.B)
        start = stop


@njit(fastmath={"reassoc", "contract"})
def _dot(S, G):
    """Σ S G."""
    total = S.dtype.type(0)
    for p in range(S.shape[0]):
        s, g = dense(S[p]), dense(G[p])
        for n in range(s.size):
            total += s[n] * g[n]
    return total


@njit(fastmath={"reassoc", "contract"})
def _added(total, more, B, dots):
    """total += more, and dots[i] = B_i · more_i."""
    for i in range(more.shape[0]):
        dot, sums, row, b = more.dtype.type(0), dense(total[i]), dense(more[i]), dense(B[i])
        for n in range(row.size):
            sums[n] += row[n]
            dot += b[n] * row[n]
        dots[i] = dot


@njit(fastmath={"reassoc"})
def _of_decays(dlog_a, both, of_S, of_G, crossing, later):
    """dlog_a_t = both + Σ_{i≥t} of_S_i + Σ_{j<t} of_G_j + Σ_{j<t≤i} crossing_ij."""
    total = both
    later[:] = 0
    for t in range(dlog_a.size - 1, -1, -1):
        total += of_S[t]
        across = both * 0
        row = dense(crossing[t])
        for j in range(t):
            later[j] += row[j]
            across += later[j]
        dlog_a[t] = total + across
    total, checked = both * 0, 0 * dlog_a[0]
    for t in range(1, dlog_a.size):
        total += of_G[t - 1]
        dlog_a[t] += total
        checked += 0 * dlog_a[t]
    return checked


@njit
def _inside(weights, scores, E, h, M, D, crossing):
    """M_ij = W_ij (C_i · B_j); D_ij summed over heads; D_ij (C_i · B_j) of this one."""
    for i in range(len(scores)):
        weight, e, m, d, both = (
            weights[i],
            dense(E[i]),
            dense(M[i]),
            dense(D[i]),
            dense(crossing[i]),
        )
        for j in range(i + 1):
            m[j] = weight[1 + j] * scores[i, j]
            one = weight[1 + j] * e[j]
            both[j] = one * scores[i, j]
            d[j] = one if h == 0 else d[j] + one


@njit(inline="always")
def _head_back(h, given, begins, scores, S, G, results, work):
    """One head in one piece: dx, dlog_a, its part of dB, dC and D, and G before the piece."""
    (dy, x, log_a), (dx, dlog_a) = given, results
    count = len(x)
    decays(log_a, begins, work.product, work.weights)
    last = work.weights[count - 1]
    moved(work.X, x, work.ones)
    moved(work.Y, dy, work.ones)
    moved(work.weighted_X, x, last[1:])
    moved(work.weighted_Y, dy, work.weights[:, 0])
    transposed(work.XT, work.X)
    multiplied(work.E[:count], work.zeros, work.E[:count], work.Y[:count], work.XT)
    _inside(work.weights, scores, work.E, h, work.M, work.D, work.crossing)
    multiplied(work.more[:count], work.zeros, work.more[:count], work.weighted_Y[:count], S)
    _added(work.dC, work.more[:count], work.C, work.alpha)
    multiplied(work.more[:count], work.zeros, work.more[:count], work.weighted_X[:count], G)
    _added(work.dB, work.more[:count], work.B, work.beta)
    both = last[0] * _dot(S, G)
    checked = _of_decays(dlog_a, both, work.alpha, work.beta, work.crossing, work.later)
    transposed(work.GT, G)
    multiplied(work.dX[:count], work.zeros, work.dX[:count], work.B[:count], work.GT)
    for j in range(0, count, ROWS):
        rows = slice(j, min(j + ROWS, count))
        multiplied(work.dX[rows], last[1 + j :], work.dX[rows], work.M[j:count, rows].T, work.Y[j:])
    moved(dx, work.dX[:count, : dx.shape[1]], work.ones)
    work.kept[:] = last[0]
    multiplied(G, work.kept, G, work.weighted_Y[:count].T, work.C)
    return nothing(work.dX[:count]) + checked


@njit(inline="always")
def _shared_back(count, dB, dC, work):
    """dB and dC of one piece, where its heads have added theirs."""
    for i in range(0, count, ROWS):
        rows = slice(i, min(i + ROWS, count))
        multiplied(work.dC[rows], work.ones, work.dC[rows], work.D[rows, : rows.stop], work.B)
        multiplied(work.dB[rows], work.ones, work.dB[rows], work.D[i:count, rows].T, work.C[i:])
    moved(dB, work.dB[:count, : dB.shape[1]], work.ones)
    moved(dC, work.dC[:count, : dC.shape[1]], work.ones)
    return nothing(work.dB[:count]) + nothing(work.dC[:count])


@njit(inline="always")
def _span_back(given, states, rest, G, gradients, work):
    """All pieces of one span, the last first."""
    (dy, x, log_a, B, C, products, resets), (dx, dlog_a, dB, dC) = given, gradients
    stop, checked = x.shape[1], x.dtype.type(0)
    while stop > 0:
        start = stop - 1
        while start % CHUNK and not resets[start]:
            start -= 1
        w, count, shift = slice(start, stop), stop - start, start % CHUNK
        moved(work.dB, work.dB, work.zeros)
        moved(work.dC, work.dC, work.zeros)
        moved(work.B, B[w], work.ones)
        moved(work.C, C[w], work.ones)
        begins, scores = resets[start], products[w, shift:]
        for h in range(len(x)):
            S = rest if shift or begins else states[start // CHUNK, h]
            given, results = (dy[h, w], x[h, w], log_a[h, w]), (dx[h, w], dlog_a[h, w])
            checked += _head_back(h, given, begins, scores, S, G[h], results, work)
        checked += _shared_back(count, dB[w], dC[w], work)
        stop = start
    return checked


@gufunc(
    "(h,l,p),(h,p,n),(h,l,p),(h,l),(l,n),(l,n),(l,q),(h,p,n),(l)"
    "->(h,l,p),(h,l),(l,n),(l,n),(h,p,n),()",
    flag=8,
    kinds=REAL,
)
def pieces_back(dy, dS, x, log_a, B, C, products, S0, resets, dx, dlog_a, dB, dC, dS0, finite):
    """Gradients of h heads with the same B and C, and whether all are finite."""
    (many, length, p), n = x.shape, B.shape[1]
    span = CHUNK * max(SPAN, int(np.sqrt(length / CHUNK)))
    spans, blocks = -(-length // span), -(-min(length, span) // CHUNK)
    work, checked, high = _work(p, n, x), x.dtype.type(0), padded(p, x)
    states = unset((blocks + 1) * many * high, n, x).reshape(blocks + 1, many, high, -1)
    starts = unset(spans * many * high, n, x).reshape(spans, many, high, -1)
    G = buffer(many * high + high, n, x).reshape(many + 1, high, -1)
    rest = G[many]
    for h in range(many):
        filled(states[0, h], S0[h])
        filled(G[h], dS[h])
    for k in range(spans - 1):
        w = slice(k * span, k * span + span)
        for h in range(many):
            filled(starts[k, h], states[0, h])
        _states(x[:, w], log_a[:, w], B[w], resets[w], states, rest, work)
        for h in range(many):
            filled(states[0, h], states[blocks, h])
    for k in range(spans - 1, -1, -1):
        w = slice(k * span, min(length, k * span + span))
        for h in range(many if k < spans - 1 else 0):
            filled(states[0, h], starts[k, h])
        _states(x[:, w], log_a[:, w], B[w], resets[w], states, rest, work)
        gradients = dx[:, w], dlog_a[:, w], dB[w], dC[w]
        given = dy[:, w], x[:, w], log_a[:, w], B[w], C[w], products[w], resets[w]
        checked += _span_back(given, states, rest, G, gradients, work)
    for h in range(many):
        filled(dS0[h], G[h])
        checked += nothing(G[h])
    finite[0] = checked == 0
