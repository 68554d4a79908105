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

import numpy as np
from numba import njit

from refssm.jit._compiling.gufunc import gufunc
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
    number,
    put,
    put_lanes,
    repeated,
    slab,
    turned,
    zeros,
)
from refssm.jit.ssd.forward import CHUNK, OWN, REAL, WEIGHT, decays, piece_end, whole
from refssm.jit.ssd.tiles import (
    ROWS,
    added,
    cleared,
    moved,
    multiplied,
    nothing,
    padded,
    row_dots,
    transposed,
    weighted,
)

SPAN = 128  # blocks, or √(all blocks) where that is more
# the first rows of what a piece needs, in `work`: matrices of CHUNK rows, then single rows
IN_X, IN_Y, OWN_Y, IN_B, IN_C, IN_DB, IN_DC, MORE = range(0, 8 * CHUNK, CHUNK)
IN_M, IN_D, CROSSING, SCORES, BELOW, IN_W, ZERO = range(8 * CHUNK, 15 * CHUNK, CHUNK)
ONE, ALPHA, BETA, LATER, FREE = range(ZERO + 1, ZERO + 6)

inlined = njit(inline="always")


@part
def _begun(work, rest):
    """Zeros everywhere, but ones in a row, and below the diagonal of a square."""
    plain()
    cleared(work)
    cleared(rest)
    for j in range(work.columns):
        put(work, ONE, j, 1.0)
    for t in range(CHUNK):
        for j in range(t):
            put(work, BELOW + t, j, 1.0)


@part
def _states(x, log_a, B, resets, span, states, rest, work, product):
    """states[k] = the states before block k, and after the last one, from states[0]."""
    plain()
    (first, last), many, (p, n) = span, x.shape[0], (rest.rows, rest.columns)
    W, ones, start = block(work, IN_W, 0, CHUNK, WEIGHT), repeated(work, ONE, 0), first
    while start < last:
        stop = piece_end(start, last, resets)
        if stop < last and stop % CHUNK:  # a reset follows, so nobody needs the state
            start = stop
            continue
        count, q = stop - start, stop - start - 1
        X, B_w = block(work, IN_X, 0, count, p), block(work, IN_B, 0, count, n)
        to_last, begins = turned(block(W, q, 0, 1, CHUNK)), resets[start]
        before, after = (start - first) // CHUNK * many, (stop - first + CHUNK - 1) // CHUNK * many
        moved(B_w, ones, block(matrix(B), start, 0, count, B.shape[1]))
        for h in range(many):
            decays(block(matrix(log_a), h, start, 1, count), begins, product, W)
            moved(X, to_last, block(slab(x, h), start, 0, count, x.shape[2]))
            S = rest if begins else block(states, (before + h) * p, 0, p, n)
            S_next = block(states, (after + h) * p, 0, p, n)
            multiplied(S_next, repeated(W, q, OWN), S, turned(X), B_w)
        start = stop


@part
def _of_decays(dlog_a, both, work):
    """dlog_a_t = both + Σ_{i≥t} alpha_i + Σ_{j<t} beta_j + Σ_{j<t≤i} crossing_ij; returns 0 if they
    are finite, else NaN."""
    plain()
    cleared(block(work, LATER, 0, 1, CHUNK))
    of_S, of_G, checked = both, 0 * both, 0 * both
    for t in range(dlog_a.columns - 1, -1, -1):
        of_S += number(work, ALPHA, t)
        across = zeros(work)
        for j in range(0, CHUNK, lanes_of(work)):
            later = lanes_at(work, LATER, j) + lanes_at(work, CROSSING + t, j)
            put_lanes(work, LATER, j, later)
            across = times_plus(later, lanes_at(work, BELOW + t, j), across)
        put(dlog_a, 0, t, of_S + total(across))
    for t in range(dlog_a.columns):
        value = number(dlog_a, 0, t) + of_G
        put(dlog_a, 0, t, value)
        of_G += number(work, BETA, t)
        checked += 0 * value
    return checked


@inlined
def _within(x, dy, W, rows, p, work):
    """Steps of a piece with each other: M, the head's D, and crossing = D_ij (C_i · B_j)."""
    X, Y, ones = (
        block(work, IN_X, 0, CHUNK, p),
        block(work, IN_Y, 0, rows, p),
        repeated(work, ONE, 0),
    )
    XT, crossing = block(work, FREE, 0, p, CHUNK), block(work, CROSSING, 0, rows, CHUNK)
    scores = block(work, SCORES, 0, rows, CHUNK)
    moved(X, ones, x)
    moved(Y, ones, dy)
    transposed(XT, X)
    multiplied(crossing, ones, repeated(work, ZERO, 0), Y, XT)
    weighted(crossing, W, crossing)
    added(block(work, IN_D, 0, rows, CHUNK), crossing)
    weighted(crossing, crossing, scores)
    weighted(block(work, IN_M, 0, rows, CHUNK), W, scores)


@inlined
def _through_states(x, dy, W, S, G, rows, work):
    """This head's part of dB and dC through S and G; alpha and beta; returns w_q Σ S G."""
    p, n, ones, zero = G.rows, G.columns, repeated(work, ONE, 0), repeated(work, ZERO, 0)
    X, Y = block(work, IN_X, 0, rows, p), block(work, OWN_Y, 0, rows, p)
    more, q = block(work, MORE, 0, rows, n), x.rows - 1
    moved(Y, block(W, 0, OWN, rows, 1), dy)
    multiplied(more, ones, zero, Y, S)
    added(block(work, IN_DC, 0, rows, n), more)
    row_dots(block(work, ALPHA, 0, 1, CHUNK), more, block(work, IN_C, 0, rows, n))
    moved(X, turned(block(W, q, 0, 1, CHUNK)), x)
    multiplied(more, ones, zero, X, G)
    added(block(work, IN_DB, 0, rows, n), more)
    row_dots(block(work, BETA, 0, 1, CHUNK), more, block(work, IN_B, 0, rows, n))
    row_dots(block(work, LATER, 0, 1, p), S, G)
    row_dots(block(work, LATER, 0, 1, 1), block(work, LATER, 0, 1, p), ones)
    return number(W, q, OWN) * number(work, LATER, 0)


@part
def _head_back(given, begins, S, G, results, work, product):
    """One head in one piece: dx, dlog_a, its part of dB, dC and D, and G before the piece."""
    plain()
    (dy, x, log_a), (dx, dlog_a), (p, n) = given, results, (G.rows, G.columns)
    count, q, rows, W = x.rows, x.rows - 1, whole(x.rows), block(work, IN_W, 0, CHUNK, WEIGHT)
    decays(log_a, begins, product, W)
    _within(x, dy, W, rows, p, work)
    checked = _of_decays(dlog_a, _through_states(x, dy, W, S, G, rows, work), work)
    ones, GT, dX = repeated(work, ONE, 0), block(work, FREE, 0, n, p), block(work, MORE, 0, rows, p)
    transposed(GT, G)
    multiplied(dX, ones, repeated(work, ZERO, 0), block(work, IN_B, 0, rows, n), GT)
    for j in range(0, rows, ROWS):
        some, left = block(dX, j, 0, ROWS, p), count - j
        M, Y = block(work, IN_M + j, j, left, ROWS), block(work, IN_Y + j, 0, left, p)
        multiplied(some, turned(block(W, q, j, 1, ROWS)), some, turned(M), Y)
    moved(dx, ones, dX)
    Y, C = block(work, OWN_Y, 0, count, p), block(work, IN_C, 0, rows, n)
    multiplied(G, repeated(W, q, OWN), G, turned(Y), C)
    return checked + nothing(block(dX, 0, 0, count, p))


@part
def _shared_back(dB, dC, n, work):
    """dB and dC of one piece, where its heads have added theirs."""
    plain()
    count, ones = dB.rows, repeated(work, ONE, 0)
    for i in range(0, count, ROWS):
        some, D = block(work, IN_DC + i, 0, ROWS, n), block(work, IN_D + i, 0, ROWS, i + ROWS)
        multiplied(some, ones, some, D, block(work, IN_B, 0, i + ROWS, n))
        some, D = block(work, IN_DB + i, 0, ROWS, n), block(work, IN_D + i, i, count - i, ROWS)
        multiplied(some, ones, some, turned(D), block(work, IN_C + i, 0, count - i, n))
    more_B, more_C = block(work, IN_DB, 0, count, n), block(work, IN_DC, 0, count, n)
    moved(dB, ones, more_B)
    moved(dC, ones, more_C)
    return nothing(more_B) + nothing(more_C)


@inlined
def _span_back(given, span, states, rest, G, gradients, work, product):
    """All pieces of one span, the last first."""
    (dy, x, log_a, B, C, products, resets), (dx, dlog_a, dB, dC) = given, gradients
    (first, stop), (many, _, size), (p, n) = span, x.shape, (rest.rows, rest.columns)
    log, dlog, for_B, for_C = matrix(log_a), matrix(dlog_a), matrix(dB), matrix(dC)
    ones, checked, width = repeated(work, ONE, 0), x.dtype.type(0), B.shape[1]
    while stop > first:
        start = stop - 1
        while start % CHUNK and not resets[start]:
            start -= 1
        count, shift, begins = stop - start, start % CHUNK, resets[start]
        rows, before = whole(count), (start - first) // CHUNK * many
        for zeroed in (IN_DB, IN_DC, IN_D):
            cleared(block(work, zeroed, 0, CHUNK, work.columns))
        moved(block(work, IN_B, 0, rows, n), ones, block(matrix(B), start, 0, count, width))
        moved(block(work, IN_C, 0, rows, n), ones, block(matrix(C), start, 0, count, width))
        scores = block(matrix(products), start, shift, count, count)
        moved(block(work, SCORES, 0, rows, CHUNK), ones, scores)
        for h in range(many):
            S = rest if shift or begins else block(states, (before + h) * p, 0, p, n)
            G_h, x_h = block(G, h * p, 0, p, n), block(slab(x, h), start, 0, count, size)
            dy_h, log_h = block(slab(dy, h), start, 0, count, size), block(log, h, start, 1, count)
            dx_h, dlog_h = (
                block(slab(dx, h), start, 0, count, size),
                block(dlog, h, start, 1, count),
            )
            given_h = dy_h, x_h, log_h
            checked += _head_back(given_h, begins, S, G_h, (dx_h, dlog_h), work, product)
        dB_w, dC_w = block(for_B, start, 0, count, width), block(for_C, start, 0, count, width)
        checked += _shared_back(dB_w, dC_w, n, work)
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
    (many, length, p), n, lanes, zero = x.shape, B.shape[1], lanes_of(matrix(B)), x.dtype.type(0)
    p, n, span = padded(p, lanes), padded(n, lanes), CHUNK * max(SPAN, int(np.sqrt(length / CHUNK)))
    spans, blocks = -(-length // span), -(-min(length, span) // CHUNK)
    # one vector more has w_i, and rows a power of two apart would share few lines of a cache
    width, height, all_p = max(p, n, CHUNK) + lanes, FREE + max(p, n), many * p
    rows, size = (blocks + spans + 2) * all_p + p, x.itemsize
    memory = np.empty(8 * WEIGHT + (rows * n + height * width) * size + BYTES, np.uint8)
    product = memory_of(memory, 0, 1, WEIGHT, 0.0)
    kept = memory_of(memory, 8 * WEIGHT, rows, n, zero)
    work = memory_of(memory, 8 * WEIGHT + rows * n * size, height, width, zero)
    G, rest = block(kept, 0, 0, all_p, n), block(kept, all_p, 0, p, n)
    states = block(kept, all_p + p, 0, (blocks + 1) * all_p, n)
    starts = block(kept, (blocks + 2) * all_p + p, 0, spans * all_p, n)
    ones, first, checked = repeated(work, ONE, 0), block(states, 0, 0, all_p, n), zero
    _begun(work, rest)
    for h in range(many):
        moved(block(states, h * p, 0, p, n), ones, slab(S0, h))
        moved(block(G, h * p, 0, p, n), ones, slab(dS, h))
    for k in range(spans - 1):
        moved(block(starts, k * all_p, 0, all_p, n), ones, first)
        _states(x, log_a, B, resets, (k * span, k * span + span), states, rest, work, product)
        moved(first, ones, block(states, blocks * all_p, 0, all_p, n))
    for k in range(spans - 1, -1, -1):
        if k < spans - 1:
            moved(first, ones, block(starts, k * all_p, 0, all_p, n))
        w, given = (k * span, min(length, k * span + span)), (dy, x, log_a, B, C, products, resets)
        _states(x, log_a, B, resets, w, states, rest, work, product)
        checked += _span_back(given, w, states, rest, G, (dx, dlog_a, dB, dC), work, product)
    for h in range(many):
        moved(slab(dS0, h), ones, block(G, h * p, 0, p, n))
    finite[0] = checked + nothing(G) == 0
    held(memory)
