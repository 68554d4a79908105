"""The gradients of linear attention, piece by piece as in `forward`.

With G the cotangent of the state after a piece, dY of the outputs, and Z, U, A, P as there,

    M = Pᵀ dY + (F∘K) G − Aᵀ β M   by backward substitution,    dV = R = β M,    dβ_i = M_i · Z_i,
    dP = dY Uᵀ,    dA = −R Uᵀ,
    dQ = E∘(dY Sᵀ) + dP·K,    dK = −E∘(R Sᵀ) + F∘(U Gᵀ) + dA·K + dAᵀ·K + dPᵀ·Q,
    G ← E_end G + (E∘Q)ᵀ dY − (E∘K)ᵀ R,

where · stands for a sum over pairs with the weights D_ij, halved as in `weights`. A pair gives its
part of Σ_n k_in k_jn D_ijn dA_ij and Σ_n q_in k_jn D_ijn dP_ij to log_g_t for j < t ≤ i, the state
before the piece to all up to i, and the state after it to all from j on: sums over later i and
earlier j, in which no two sums are subtracted.

The states before pieces and the errors Z are kept for SPAN steps at a time (`chunked`).
"""

# pyright: reportCallIssue=false
# (a gufunc allocates its outputs; pyright does not know that)

import numpy as np

from refssm.jit._compiling.gufunc import gufunc
from refssm.jit._compiling.parts import part
from refssm.jit._vectors.lanes import plain, times_plus
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
    turned,
    zeros,
)
from refssm.jit.linear_attention.forward import (
    REAL,
    advanced,
    piece_end,
    piece_of,
    prepared,
    products_of,
    read,
    weighed,
    written,
)
from refssm.jit.linear_attention.pairs import (
    AWAY,
    DA,
    DG,
    DK,
    DP,
    DQ,
    IN_M,
    IN_R,
    IN_Y,
    LOOSE,
    pairs_back,
)
from refssm.jit.linear_attention.weights import (
    BETA,
    CHUNK,
    FREE,
    FROM,
    IN_A,
    IN_K,
    IN_N,
    IN_P,
    IN_Q,
    IN_U,
    IN_Z,
    LAST,
    OF_END,
    OF_K,
    OF_Q,
    ONE,
    TO,
    ZERO,
)
from refssm.jit.ssd.tiles import (
    ROWS,
    cleared,
    moved,
    multiplied,
    nothing,
    padded,
    row_dots,
    transposed,
)


@part
def _of_writings(G, corrected, rows, p, n, work, more):
    """IN_M: the cotangents of what the steps write; IN_R those of their errors."""
    plain()
    ones, zero = repeated(work, ONE, 0), repeated(work, ZERO, 0)
    M = block(more, IN_M, 0, rows, p)
    multiplied(M, ones, zero, block(work, OF_END, 0, rows, n), G)
    for j in range(0, rows, ROWS):
        some, PT = block(M, j, 0, ROWS, p), turned(block(work, IN_P + j, j, rows - j, ROWS))
        multiplied(some, ones, some, PT, block(more, IN_Y + j, 0, rows - j, p))
    if corrected:
        for i in range(rows):
            minus = -1.0 * number(work, BETA, i)
            for c in range(0, rows, lanes_of(work)):
                put_lanes(work, IN_N + i, c, minus * lanes_at(work, IN_A + i, c))
        for r in range(rows - ROWS, -1, -ROWS):
            _substituted(r, rows, p, work, more)
        moved(block(more, IN_R, 0, rows, p), turned(block(work, BETA, 0, 1, rows)), M)
    else:
        moved(block(more, IN_R, 0, rows, p), ones, M)


@part
def _substituted(r, rows, p, work, more):
    """M_j += Σ_{i>j} N_ij M_i for ROWS rows from r on; those behind are done."""
    plain()
    behind = r + ROWS
    if behind < rows:
        NT = turned(block(work, IN_N + behind, r, rows - behind, ROWS))
        some, M = block(more, IN_M + r, 0, ROWS, p), block(more, IN_M + behind, 0, rows - behind, p)
        multiplied(some, repeated(work, ONE, 0), some, NT, M)
    for j in range(behind - 2, r - 1, -1):
        for i in range(j + 1, behind):
            weight = number(work, IN_N + i, j)
            for c in range(0, p, lanes_of(work)):
                M = lanes_at(more, IN_M + j, c)
                put_lanes(more, IN_M + j, c, times_plus(lanes_at(more, IN_M + i, c), weight, M))


@part
def _of_scores(one, corrected, rows, p, work, more):
    """DP = dY Uᵀ for i ≥ j, and DA = −R Uᵀ for i > j; 0 elsewhere. `one`: one decay for all keys;
    DA is R Uᵀ then, and `pairs_back` multiplies both by weights that are 0 elsewhere."""
    plain()
    ones, zero = repeated(work, ONE, 0), repeated(work, ZERO, 0)
    UT = block(more, LOOSE, 0, p, rows)
    transposed(UT, block(work, IN_U, 0, rows, p))
    multiplied(block(more, DP, 0, rows, rows), ones, zero, block(more, IN_Y, 0, rows, p), UT)
    if corrected:
        multiplied(block(more, DA, 0, rows, rows), ones, zero, block(more, IN_R, 0, rows, p), UT)
    if one:
        return
    for i in range(rows):
        for j in range(i + 1, rows):
            put(more, DP + i, j, 0.0)
        for j in range(rows):
            put(more, DA + i, j, -number(more, DA + i, j) if corrected and j < i else 0.0)


@part
def _through_states(one, S, G, corrected, rows, p, n, work, more):
    """DQ, DK and DG as far as they come from S and G; then G is that before the piece."""
    plain()
    if one:
        _through_states_of_one(S, G, corrected, rows, p, n, work, more)
    else:
        _through_states_of_each(S, G, corrected, rows, p, n, work, more)
    last = turned(block(work, LAST, 0, 1, n))
    multiplied(G, last, G, turned(block(work, OF_Q, 0, rows, n)), block(more, IN_Y, 0, rows, p))
    if corrected:
        KT = turned(block(work, OF_K, 0, rows, n))
        multiplied(G, turned(block(work, ONE, 0, 1, n)), G, KT, block(more, IN_R, 0, rows, p))


@part
def _through_states_of_one(S, G, corrected, rows, p, n, work, more):
    """With one decay for all keys: DQ lacks its weights E, and DG has one column."""
    plain()
    ones, zero = repeated(work, ONE, 0), repeated(work, ZERO, 0)
    DQ_, DK_ = block(more, DQ, 0, rows, n), block(more, DK, 0, rows, n)
    T, away = block(more, LOOSE, 0, p, n), block(more, AWAY, 0, rows, n)
    transposed(T, G)
    multiplied(DK_, ones, zero, block(work, IN_U, 0, rows, p), T)
    row_dots(block(work, IN_N, 0, 1, rows), DK_, block(work, OF_END, 0, rows, n))
    row_dots(block(work, IN_N + 3, 0, 1, n), S, G)
    transposed(T, S)
    multiplied(DQ_, ones, zero, block(more, IN_Y, 0, rows, p), T)
    row_dots(block(work, IN_N + 1, 0, 1, rows), DQ_, block(work, OF_Q, 0, rows, n))
    if corrected:
        multiplied(away, ones, zero, block(more, IN_R, 0, rows, p), T)
    else:
        cleared(away)
    row_dots(block(work, IN_N + 2, 0, 1, rows), away, block(work, OF_K, 0, rows, n))
    for i in range(rows):
        for c in range(0, n, lanes_of(work)):
            dk = lanes_at(work, TO + i, c) * lanes_at(more, DK + i, c)
            through = lanes_at(work, FROM + i, c) * lanes_at(more, AWAY + i, c)
            put_lanes(more, DK + i, c, dk - through)
    later, before = number(work, LAST, 0) * number(work, IN_N + 3, 0), number(work, ZERO, 0)
    for c in range(1, n):
        later += number(work, LAST, c) * number(work, IN_N + 3, c)
    for i in range(rows - 1, -1, -1):
        later += number(work, IN_N + 1, i) + number(work, IN_N + 2, i)
        put(more, DG + i, 0, later)
    for j in range(rows):
        put(more, DG + j, 0, number(more, DG + j, 0) + before)
        before += number(work, IN_N, j)


@part
def _through_states_of_each(S, G, corrected, rows, p, n, work, more):
    """With a decay for each key."""
    plain()
    ones, zero = repeated(work, ONE, 0), repeated(work, ZERO, 0)
    away, T = block(more, AWAY, 0, rows, n), block(more, LOOSE, 0, p, n)
    transposed(T, G)
    multiplied(away, ones, zero, block(work, IN_U, 0, rows, p), T)
    _of_end(rows, n, work, more)
    transposed(T, S)
    multiplied(away, ones, zero, block(more, IN_Y, 0, rows, p), T)
    for i in range(rows):
        for c in range(0, n, lanes_of(work)):
            dq = lanes_at(work, FROM + i, c) * lanes_at(more, AWAY + i, c)
            put_lanes(more, DQ + i, c, dq)
            put_lanes(work, IN_N + i, c, dq * lanes_at(work, IN_Q + i, c))  # for sums over later i
    if corrected:
        multiplied(away, ones, zero, block(more, IN_R, 0, rows, p), T)
        for i in range(rows):
            for c in range(0, n, lanes_of(work)):
                dk = lanes_at(work, FROM + i, c) * lanes_at(more, AWAY + i, c)
                put_lanes(more, DK + i, c, lanes_at(more, DK + i, c) - dk)
                of_q = lanes_at(work, IN_N + i, c)
                put_lanes(work, IN_N + i, c, of_q - dk * lanes_at(work, IN_K + i, c))
    _of_start(S, G, rows, p, n, work, more)


@part
def _of_end(rows, n, work, more):
    """DK = F∘(U Gᵀ), and in DG its sums over earlier steps."""
    plain()
    for c in range(0, n, lanes_of(work)):
        before = zeros(work)
        for j in range(rows):
            dk = lanes_at(work, TO + j, c) * lanes_at(more, AWAY + j, c)
            put_lanes(more, DK + j, c, dk)
            put_lanes(more, DG + j, c, before)
            before = times_plus(dk, lanes_at(work, IN_K + j, c), before)


@part
def _of_start(S, G, rows, p, n, work, more):
    """Adds to DG the sums of IN_N over this and later steps, and E_end Σ S G."""
    plain()
    row_dots(block(more, AWAY, 0, 1, n), S, G)
    for c in range(0, n, lanes_of(work)):
        later = lanes_at(work, LAST, c) * lanes_at(more, AWAY, c)
        for i in range(rows - 1, -1, -1):
            later = later + lanes_at(work, IN_N + i, c)
            put_lanes(more, DG + i, c, lanes_at(more, DG + i, c) + later)


@part
def _given(dq, dk, dv, dlog_g, dbeta, corrected, rows, p, n, work, more):
    """Writes the gradients of a piece; returns 0 if all are finite, else NaN."""
    plain()
    ones, count = repeated(work, ONE, 0), dq.rows
    R, M, Z = (
        block(more, IN_R, 0, rows, p),
        block(more, IN_M, 0, rows, p),
        block(work, IN_Z, 0, rows, p),
    )
    moved(dq, ones, block(more, DQ, 0, rows, n))
    moved(dk, ones, block(more, DK, 0, rows, n))
    moved(dv, ones, R)
    checked = nothing(block(more, DQ, 0, count, n)) + nothing(block(more, DK, 0, count, n))
    checked += nothing(block(more, IN_R, 0, count, p))
    if corrected:
        row_dots(block(more, AWAY, 0, 1, rows), M, Z)
        moved(dbeta, ones, block(more, AWAY, 0, 1, rows))
    for t in range(count if dlog_g.columns == 1 else 0):
        put(dlog_g, t, 0, number(more, DG + t, 0))
    if dlog_g.columns > 1:
        moved(dlog_g, ones, block(more, DG, 0, rows, n))
    return checked + nothing(block(more, DG, 0, count, n))


@part
def _through_piece(one, S, G, corrected, rows, p, n, work, more):
    """What `_given` writes, from IN_Y and from G, which is then that before the piece."""
    plain()
    _of_writings(G, corrected, rows, p, n, work, more)
    _of_scores(one, corrected, rows, p, work, more)
    _through_states(one, S, G, corrected, rows, p, n, work, more)
    pairs_back(one, corrected, rows, n, work, more)


@part
def _states(resets):
    """At least as many as there are states between pieces, the first and the last included."""
    count = 2
    for t in range(resets.size):
        count += resets[t] or t % CHUNK == 0
    return count


@gufunc(
    "(l,p),(n,p),(l,n),(l,n),(l,p),(l,m),(o,b),(l,c),(l,c),(n,p),(l)"
    "->(l,n),(l,n),(l,p),(l,m),(o,b),(n,p),()",
    flag=10,
    kinds=REAL,
)
def pieces_back(
    dy, dS, q, k, v, log_g, beta, KK, QK, S0, resets,
    dq, dk, dv, dlog_g, dbeta, dS0, finite,
):  # fmt: skip
    """All gradients, and whether they are finite; `beta` is a row of l numbers, or of none; `KK`
    and `QK` as in `scan_pieces`."""
    (length, p), n, lanes = v.shape, k.shape[1], lanes_of(matrix(k))
    p, n, zero, checked = padded(p, lanes), padded(n, lanes), v.dtype.type(0), v.dtype.type(0)
    width, size, corrected = max(p, n, CHUNK) + lanes, v.itemsize, beta.size > 0
    height, further = FREE + max(p, n), LOOSE + max(p, n)
    one, kept, place = log_g.shape[1] == 1, length if corrected else 0, _states(resets) * n
    every = place + n + height + further + kept
    memory = np.empty(every * width * size + BYTES, np.uint8)
    whole = memory_of(memory, 0, every, width, zero)
    states, G = block(whole, 0, 0, place, width), block(whole, place, 0, n, p)
    work, place = block(whole, place + n, 0, height, width), place + n + height
    more = block(whole, place, 0, further, width)
    errors = block(whole, place + further, 0, kept, p)
    prepared(work)
    cleared(more)
    ones, start, at = repeated(work, ONE, 0), 0, 0
    moved(block(states, 0, 0, n, p), ones, matrix(S0))
    moved(G, ones, matrix(dS))
    while start < length:
        stop, begins = piece_end(start, length, resets), resets[start]
        count, S = stop - start, block(states, at * n, 0, n, p)
        if begins:
            cleared(S)
        if stop < length:
            rows, after = padded(count, lanes), block(states, at * n + n, 0, n, p)
            _read_at(start, count, q, k, v, log_g, beta, KK, QK, begins, rows, work, n, p)
            written(S, corrected, rows, p, n, work)
            if corrected:
                moved(piece_of(errors, start, count), ones, block(work, IN_Z, 0, count, p))
            moved(after, ones, S)
            advanced(after, rows, p, n, work)
        start, at = stop, at + 1
    stop = length
    while stop > 0:
        start, at = stop - 1, at - 1
        while start % CHUNK and not resets[start]:
            start -= 1
        count, begins, S = stop - start, resets[start], block(states, at * n, 0, n, p)
        rows = padded(count, lanes)
        _read_at(start, count, q, k, v, log_g, beta, KK, QK, begins, rows, work, n, p)
        if corrected and stop < length:
            moved(block(work, IN_Z, 0, rows, p), ones, piece_of(errors, start, count))
            weighed(corrected, rows, p, work)
        else:
            written(S, corrected, rows, p, n, work)
        moved(block(more, IN_Y, 0, rows, p), ones, piece_of(matrix(dy), start, count))
        _through_piece(one, S, G, corrected, rows, p, n, work, more)
        of_beta = block(matrix(dbeta), 0, start, 1, count if corrected else 0)
        of_q, of_k = piece_of(matrix(dq), start, count), piece_of(matrix(dk), start, count)
        of_v, of_g = piece_of(matrix(dv), start, count), piece_of(matrix(dlog_g), start, count)
        checked += _given(of_q, of_k, of_v, of_g, of_beta, corrected, rows, p, n, work, more)
        stop = start
    moved(matrix(dS0), ones, G)
    finite[0] = checked + nothing(G) == 0
    held(memory)


@part
def _read_at(start, count, q, k, v, log_g, beta, KK, QK, begins, rows, work, n, p):
    """`read` for the piece from `start` on."""
    given = piece_of(matrix(q), start, count), piece_of(matrix(k), start, count)
    of_v, of_g = piece_of(matrix(v), start, count), piece_of(matrix(log_g), start, count)
    of_beta = block(matrix(beta), 0, start, 1, count if beta.size > 0 else 0)
    scored = products_of(matrix(KK), start, count), products_of(matrix(QK), start, count)
    read(*given, of_v, of_g, of_beta, *scored, begins, rows, work, n, p)
