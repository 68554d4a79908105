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
from refssm.jit.ssd.tiles import ROWS, buffer, moved, multiplied, transposed, unset

SPAN = 128  # blocks, or √(all blocks) where that is more


Work = namedtuple(
    "Work",
    "product, weights, kept, zeros, ones, alpha, beta, later, X, Y, weighted_X, weighted_Y, dX, "
    "B, C, dB, dC, more, XT, GT, E, M, D, crossing",
)


@njit
def _work(p, n, x):
    """The arrays that every piece needs."""
    one, wide = np.ones(CHUNK, x.dtype), buffer(1, p, x).size
    return Work(
        np.empty(CHUNK + 1),
        np.empty((CHUNK + 1, CHUNK + 1), x.dtype),
        np.empty(wide, x.dtype),
        np.zeros(CHUNK, x.dtype),
        one,
        one.copy(),
        one.copy(),
        one.copy(),
        buffer(CHUNK, p, x),
        buffer(CHUNK, p, x),
        buffer(CHUNK, p, x),
        buffer(CHUNK, p, x),
        buffer(CHUNK, p, x),
        buffer(CHUNK, n, x),
        buffer(CHUNK, n, x),
        buffer(CHUNK, n, x),
        buffer(CHUNK, n, x),
        buffer(CHUNK, n, x),
        buffer(wide, CHUNK, x),
        buffer(buffer(1, n, x).size, p, x),
        buffer(CHUNK, CHUNK, x),
        buffer(CHUNK, CHUNK, x),
        buffer(CHUNK, CHUNK, x),
        buffer(CHUNK, CHUNK, x),
    )


@njit
def _states(x, log_a, B, resets, S, states, work):
    """states[k] is the state before block k of these steps; S becomes the last state."""
    start, length = 0, x.shape[1]
    while start < length:
        if start % CHUNK == 0:
            states[start // CHUNK] = S
        stop = piece_end(start, length, resets)
        w, count = slice(start, stop), stop - start
        moved(work.B, B[w], work.ones)
        for h in range(len(x)):
            if resets[start]:
                S[h] = 0
            decays(log_a[h, w], resets[start], work.product, work.weights)
            last = work.weights[count - 1]
            moved(work.weighted_X, x[h, w], last[1:])
            work.kept[:] = last[0]
            multiplied(S[h], work.kept, work.weighted_X[:count].T, work.B)
        start = stop


@njit(fastmath={"reassoc", "contract"})
def _dot(S, G):
    """Σ S G."""
    total = S.dtype.type(0)
    for p in range(S.shape[0]):
        for n in range(S.shape[1]):
            total += S[p, n] * G[p, n]
    return total


@njit(fastmath={"reassoc", "contract"})
def _added(total, more, B, dots):
    """total += more, and dots[i] = B_i · more_i."""
    for i in range(more.shape[0]):
        dot = more.dtype.type(0)
        for n in range(more.shape[1]):
            total[i, n] += more[i, n]
            dot += B[i, n] * more[i, n]
        dots[i] = dot


@njit(fastmath={"reassoc"})
def _of_decays(dlog_a, both, of_S, of_G, crossing, later):
    """dlog_a_t = both + Σ_{i≥t} of_S_i + Σ_{j<t} of_G_j + Σ_{j<t≤i} crossing_ij."""
    total = both
    later[:] = 0
    for t in range(dlog_a.size - 1, -1, -1):
        total += of_S[t]
        across = both * 0
        for j in range(t):
            later[j] += crossing[t, j]
            across += later[j]
        dlog_a[t] = total + across
    total = both * 0
    for t in range(1, dlog_a.size):
        total += of_G[t - 1]
        dlog_a[t] += total


@njit
def _inside(weights, scores, E, h, M, D, crossing):
    """M_ij = W_ij (C_i · B_j); D_ij summed over heads; D_ij (C_i · B_j) of this one."""
    for i in range(len(scores)):
        for j in range(i + 1):
            M[i, j] = weights[i, 1 + j] * scores[i, j]
            one = weights[i, 1 + j] * E[i, j]
            crossing[i, j] = one * scores[i, j]
            D[i, j] = one if h == 0 else D[i, j] + one


@njit
def _head_back(h, dy, x, log_a, begins, scores, S, G, dx, dlog_a, work):
    """One head in one piece: dx, dlog_a, its part of dB, dC and D, and G before the piece."""
    count = len(x)
    decays(log_a, begins, work.product, work.weights)
    last = work.weights[count - 1]
    moved(work.X, x, work.ones)
    moved(work.Y, dy, work.ones)
    moved(work.weighted_X, x, last[1:])
    moved(work.weighted_Y, dy, work.weights[:, 0])
    transposed(work.XT, work.X)
    multiplied(work.E[:count], work.zeros, work.Y[:count], work.XT)
    _inside(work.weights, scores, work.E, h, work.M, work.D, work.crossing)
    multiplied(work.more[:count], work.zeros, work.weighted_Y[:count], S)
    _added(work.dC, work.more[:count], work.C, work.alpha)
    multiplied(work.more[:count], work.zeros, work.weighted_X[:count], G)
    _added(work.dB, work.more[:count], work.B, work.beta)
    both = last[0] * _dot(S, G)
    _of_decays(dlog_a, both, work.alpha, work.beta, work.crossing, work.later)
    transposed(work.GT, G)
    multiplied(work.dX[:count], work.zeros, work.B[:count], work.GT)
    for j in range(0, count, ROWS):
        rows = slice(j, min(j + ROWS, count))
        multiplied(work.dX[rows], last[1 + j :], work.M[j:count, rows].T, work.Y[j:])
    moved(dx, work.dX[:count, : dx.shape[1]], work.ones)
    work.kept[:] = last[0]
    multiplied(G, work.kept, work.weighted_Y[:count].T, work.C)
    return nothing(work.dX[:count]) + 0 * dlog_a.sum()


@njit
def _shared_back(count, dB, dC, work):
    """dB and dC of one piece, where its heads have added theirs."""
    for i in range(0, count, ROWS):
        rows = slice(i, min(i + ROWS, count))
        multiplied(work.dC[rows], work.ones, work.D[rows, : rows.stop], work.B)
        multiplied(work.dB[rows], work.ones, work.D[i:count, rows].T, work.C[i:])
    moved(dB, work.dB[:count, : dB.shape[1]], work.ones)
    moved(dC, work.dC[:count, : dC.shape[1]], work.ones)
    return nothing(work.dB[:count]) + nothing(work.dC[:count])


@njit
def _span_back(dy, x, log_a, B, C, products, resets, states, G, gradients, work):
    """All pieces of one span, the last first."""
    (dx, dlog_a, dB, dC), stop, checked = gradients, x.shape[1], x.dtype.type(0)
    rest = np.zeros_like(G[0])
    while stop > 0:
        start = stop - 1
        while start % CHUNK and not resets[start]:
            start -= 1
        w, count, shift = slice(start, stop), stop - start, start % CHUNK
        work.dB[:] = 0
        work.dC[:] = 0
        moved(work.B, B[w], work.ones)
        moved(work.C, C[w], work.ones)
        begins, scores = resets[start], products[w, shift:]
        for h in range(len(x)):
            S = rest if shift or begins else states[start // CHUNK, h]
            arrays = dy[h, w], x[h, w], log_a[h, w], begins, scores
            checked += _head_back(h, *arrays, S, G[h], dx[h, w], dlog_a[h, w], work)
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
    work, checked = _work(p, n, x), x.dtype.type(0)
    high = work.XT.shape[0]
    S = buffer(many * high, n, x).reshape(many, high, -1)
    G = np.zeros_like(S)
    states = unset(blocks * many * high, n, x).reshape(blocks, many, high, -1)
    starts = unset(spans * many * high, n, x).reshape(spans, many, high, -1)
    for h in range(many):
        S[h, :p, :n] = S0[h]
        G[h, :p, :n] = dS[h]
    for k in range(spans):
        starts[k] = S
        w = slice(k * span, min(length, k * span + span))
        if k < spans - 1:
            _states(x[:, w], log_a[:, w], B[w], resets[w], S, states, work)
    for k in range(spans - 1, -1, -1):
        S[:] = starts[k]
        w = slice(k * span, min(length, k * span + span))
        _states(x[:, w], log_a[:, w], B[w], resets[w], S, states, work)
        gradients = dx[:, w], dlog_a[:, w], dB[w], dC[w]
        checked += _span_back(
            dy[:, w],
            x[:, w],
            log_a[:, w],
            B[w],
            C[w],
            products[w],
            resets[w],
            states,
            G,
            gradients,
            work,
        )
    for h in range(many):
        dS0[h] = G[h, :p, :n]
        checked += nothing(G[h])
    finite[0] = checked == 0
