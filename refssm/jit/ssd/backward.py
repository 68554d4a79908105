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

from refssm.jit._gufunc import gufunc
from refssm.jit._lanes import inner, times_plus, total
from refssm.jit._matrix import (
    held,
    lanes_at,
    lanes_of,
    matrix,
    memory_of,
    number,
    part,
    plain,
    put,
    put_lanes,
    repeated,
    slab,
    turned,
    zeros,
)
from refssm.jit.ssd.forward import CHUNK, OWN, REAL, decays, piece_end, whole
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
# the first rows of the matrices in `work`
X_OF, Y_OF, OWN_Y, MORE, B_OF, C_OF, DB, DC, E_OF, M_OF, D_OF, SCORES, BELOW, WEIGHTS, ZERO = range(
    0, 15 * CHUNK, CHUNK
)
ONE, ALPHA, BETA, LATER, FREE = range(ZERO + 1, ZERO + 6)


@inner
def _states(x, log_a, B, resets, span, states, rest, work, product):
    """states[k] = the states before block k, and after the last one, from states[0]."""
    plain()
    (first, last), many, (p, n) = span, x.shape[0], (rest.rows, rest.columns)
    weights, ones, start = part(work, WEIGHTS, 0, CHUNK, OWN + 1), repeated(work, ONE, 0), first
    while start < last:
        stop = piece_end(start, last, resets)
        if stop < last and stop % CHUNK:  # a reset follows, so nobody needs the state
            start = stop
            continue
        count, q = stop - start, stop - start - 1
        B_w = part(work, B_OF, 0, whole(count), n)
        moved(B_w, ones, part(matrix(B), start, 0, count, B.shape[1]))
        for h in range(many):
            decays(part(matrix(log_a), h, start, 1, count), resets[start], product, weights)
            X = part(work, X_OF, 0, count, p)
            by_X = turned(part(weights, q, 0, 1, CHUNK))
            moved(X, by_X, part(slab(x, h), start, 0, count, x.shape[2]))
            before = ((start - first) // CHUNK * many + h) * p
            S = rest if resets[start] else part(states, before, 0, p, n)
            after = part(states, (-((first - stop) // CHUNK) * many + h) * p, 0, p, n)
            multiplied(after, repeated(weights, q, OWN), S, turned(X), B_w)
        start = stop


@inner
def _of_decays(dlog_a, both, crossing, work):
    """dlog_a_t = both + Σ_{i≥t} alpha_i + Σ_{j<t} beta_j + Σ_{j<t≤i} crossing_ij; returns 0 if they
    are finite, else NaN."""
    plain()
    cleared(part(work, LATER, 0, 1, CHUNK))
    of_S, of_G, checked = both, 0 * both, 0 * both
    for t in range(dlog_a.columns - 1, -1, -1):
        of_S += number(work, ALPHA, t)
        across = zeros(work)
        for j in range(0, CHUNK, lanes_of(work)):
            later = lanes_at(work, LATER, j) + lanes_at(crossing, t, j)
            put_lanes(work, LATER, j, later)
            across = times_plus(later, lanes_at(work, BELOW + t, j), across)
        put(dlog_a, 0, t, of_S + total(across))
    for t in range(dlog_a.columns):
        value = number(dlog_a, 0, t) + of_G
        put(dlog_a, 0, t, value)
        of_G += number(work, BETA, t)
        checked += 0 * value
    return checked


@inner
def _head_back(given, begins, S, G, results, work, product):
    """One head in one piece: dx, dlog_a, its part of dB, dC and D, and G before the piece."""
    plain()
    (dy, x, log_a), (dx, dlog_a) = given, results
    count, p, n, q = x.rows, G.rows, G.columns, x.rows - 1
    rows, ones, zero = whole(count), repeated(work, ONE, 0), repeated(work, ZERO, 0)
    X, Y, by_S = (
        part(work, X_OF, 0, CHUNK, p),
        part(work, Y_OF, 0, rows, p),
        part(work, MORE, 0, rows, n),
    )
    E, M, D = (
        part(work, E_OF, 0, rows, CHUNK),
        part(work, M_OF, 0, rows, CHUNK),
        part(work, D_OF, 0, rows, CHUNK),
    )
    B, C, scores = (
        part(work, B_OF, 0, rows, n),
        part(work, C_OF, 0, rows, n),
        part(work, SCORES, 0, rows, CHUNK),
    )
    own_Y, dX = part(work, OWN_Y, 0, rows, p), part(work, MORE, 0, rows, p)
    weights, XT, GT = (
        part(work, WEIGHTS, 0, rows, CHUNK),
        part(work, FREE, 0, p, CHUNK),
        part(work, FREE, 0, n, p),
    )
    decays(log_a, begins, product, weights)
    moved(X, ones, x)
    moved(Y, ones, dy)
    transposed(XT, X)
    multiplied(E, ones, zero, Y, XT)
    weighted(M, weights, scores)
    weighted(E, weights, E)
    added(D, E)
    weighted(E, E, scores)
    moved(own_Y, part(weights, 0, OWN, rows, 1), dy)
    multiplied(by_S, ones, zero, own_Y, S)
    added(part(work, DC, 0, rows, n), by_S)
    row_dots(part(work, ALPHA, 0, 1, CHUNK), by_S, C)
    moved(X, turned(part(weights, q, 0, 1, CHUNK)), x)
    multiplied(by_S, ones, zero, part(X, 0, 0, rows, p), G)
    added(part(work, DB, 0, rows, n), by_S)
    row_dots(part(work, BETA, 0, 1, CHUNK), by_S, B)
    row_dots(part(work, LATER, 0, 1, p), S, G)
    row_dots(part(work, LATER, 0, 1, 1), part(work, LATER, 0, 1, p), ones)
    checked = _of_decays(dlog_a, number(weights, q, OWN) * number(work, LATER, 0), E, work)
    transposed(GT, G)
    multiplied(dX, ones, zero, B, GT)
    for j in range(0, rows, ROWS):
        some = part(dX, j, 0, ROWS, p)
        by = turned(part(weights, q, j, 1, ROWS))
        multiplied(
            some, by, some, turned(part(M, j, j, count - j, ROWS)), part(Y, j, 0, count - j, p)
        )
    moved(dx, ones, dX)
    multiplied(G, repeated(weights, q, OWN), G, turned(part(own_Y, 0, 0, count, p)), C)
    return checked + nothing(part(dX, 0, 0, count, p))


@inner
def _shared_back(dB, dC, n, work):
    """dB and dC of one piece, where its heads have added theirs."""
    plain()
    count, rows, ones = dB.rows, whole(dB.rows), repeated(work, ONE, 0)
    of_B, of_C, D = (
        part(work, DB, 0, rows, n),
        part(work, DC, 0, rows, n),
        part(work, D_OF, 0, rows, CHUNK),
    )
    B, C = part(work, B_OF, 0, rows, n), part(work, C_OF, 0, rows, n)
    for i in range(0, rows, ROWS):
        some, more = part(of_C, i, 0, ROWS, n), part(of_B, i, 0, ROWS, n)
        multiplied(some, ones, some, part(D, i, 0, ROWS, i + ROWS), B)
        multiplied(
            more, ones, more, turned(part(D, i, i, count - i, ROWS)), part(C, i, 0, count - i, n)
        )
    moved(dB, ones, of_B)
    moved(dC, ones, of_C)
    return nothing(part(of_B, 0, 0, count, n)) + nothing(part(of_C, 0, 0, count, n))


@inner
def _span_back(given, span, states, rest, G, gradients, work, product):
    """All pieces of one span, the last first."""
    plain()
    (dy, x, log_a, B, C, products, resets), (dx, dlog_a, dB, dC) = given, gradients
    (first, stop), (many, _, size), (p, n) = span, x.shape, (rest.rows, rest.columns)
    ones, checked = repeated(work, ONE, 0), x.dtype.type(0)
    while stop > first:
        start = stop - 1
        while start % CHUNK and not resets[start]:
            start -= 1
        count, shift, begins = stop - start, start % CHUNK, resets[start]
        rows = whole(count)
        cleared(part(work, DB, 0, 2 * CHUNK, n))
        cleared(part(work, D_OF, 0, CHUNK, CHUNK))
        moved(part(work, B_OF, 0, rows, n), ones, part(matrix(B), start, 0, count, B.shape[1]))
        moved(part(work, C_OF, 0, rows, n), ones, part(matrix(C), start, 0, count, B.shape[1]))
        scores = part(matrix(products), start, shift, count, count)
        moved(part(work, SCORES, 0, rows, CHUNK), ones, scores)
        for h in range(many):
            before = part(states, ((start - first) // CHUNK * many + h) * p, 0, p, n)
            S = rest if shift or begins else before
            head = (
                part(slab(dy, h), start, 0, count, size),
                part(slab(x, h), start, 0, count, size),
                part(matrix(log_a), h, start, 1, count),
            )
            results = (
                part(slab(dx, h), start, 0, count, size),
                part(matrix(dlog_a), h, start, 1, count),
            )
            G_h = part(G, h * p, 0, p, n)
            checked += _head_back(head, begins, S, G_h, results, work, product)
        of_B = part(matrix(dB), start, 0, count, B.shape[1])
        of_C = part(matrix(dC), start, 0, count, B.shape[1])
        checked += _shared_back(of_B, of_C, n, work)
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
    (many, length, p), n, like = x.shape, B.shape[1], matrix(B)
    p, n, lanes = padded(p, like), padded(n, like), lanes_of(like)
    span = CHUNK * max(SPAN, int(np.sqrt(length / CHUNK)))
    spans, blocks = -(-length // span), -(-min(length, span) // CHUNK)
    # one vector more: rows a power of two apart would share few lines of the first cache
    width, height, all_p = max(p, n, CHUNK) + lanes, FREE + max(p, n), many * p
    room = np.empty(((blocks + spans + 2) * all_p + p) * n + height * width + lanes, x.dtype)
    G, rest = memory_of(room, 0, all_p, n), memory_of(room, all_p * n, p, n)
    states = memory_of(room, (all_p + p) * n, (blocks + 1) * all_p, n)
    starts = memory_of(room, ((blocks + 2) * all_p + p) * n, spans * all_p, n)
    work = memory_of(room, ((blocks + spans + 2) * all_p + p) * n, height, width)
    doubles = np.empty(CHUNK + 16, np.float64)
    product, ones, checked = (
        memory_of(doubles, 0, 1, CHUNK + 8),
        repeated(work, ONE, 0),
        x.dtype.type(0),
    )
    cleared(rest)
    cleared(work)
    for j in range(width):
        put(work, ONE, j, 1.0)
    for t in range(CHUNK):
        for j in range(t):
            put(work, BELOW + t, j, 1.0)
    for h in range(many):
        moved(part(states, h * p, 0, p, n), ones, slab(S0, h))
        moved(part(G, h * p, 0, p, n), ones, slab(dS, h))
    begun = part(states, 0, 0, all_p, n)
    for k in range(spans - 1):
        moved(part(starts, k * all_p, 0, all_p, n), ones, begun)
        _states(x, log_a, B, resets, (k * span, k * span + span), states, rest, work, product)
        moved(begun, ones, part(states, blocks * all_p, 0, all_p, n))
    for k in range(spans - 1, -1, -1):
        if k < spans - 1:
            moved(begun, ones, part(starts, k * all_p, 0, all_p, n))
        w = k * span, min(length, k * span + span)
        _states(x, log_a, B, resets, w, states, rest, work, product)
        given, gradients = (dy, x, log_a, B, C, products, resets), (dx, dlog_a, dB, dC)
        checked += _span_back(given, w, states, rest, G, gradients, work, product)
    for h in range(many):
        moved(slab(dS0, h), ones, part(G, h * p, 0, p, n))
    finite[0] = checked + nothing(G) == 0
    held(room)
    held(doubles)
